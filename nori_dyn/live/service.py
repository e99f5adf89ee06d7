"""The loop: messages in, estimates out, until it is to stop; what goes wrong is counted and reported, never fatal."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from nori_dyn.errors import InputError, NoriError
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.filtering.tracked import Recognised
from nori_dyn.filtering.watched import Watched
from nori_dyn.live.account import Account
from nori_dyn.live.decoding import LiveTopic
from nori_dyn.live.differentiation import live_derivative
from nori_dyn.live.engine import Engine, LiveEstimate, prepared, warm_up
from nori_dyn.live.publication import Publication
from nori_dyn.live.state import State
from nori_dyn.live.transport import LIMIT, Inbox, Message, Transport
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.binding import Binding, bind
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.messages.estimates import PREFIX
from nori_dyn.logs.messages.kinds import MalformedMessage
from nori_dyn.logs.motion.differentiation import AUTO, Differentiate
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.tables import number


class Stop:
    """Whether a signal has told a run to stop: once to end well, twice to end at once."""

    def __init__(self) -> None:
        self.is_told = False

    def __call__(self) -> bool:
        return self.is_told

    def _tell(self, number: int, frame: FrameType | None) -> None:
        if self.is_told:
            raise KeyboardInterrupt
        self.is_told = True

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to SIGINT, as Ctrl-C sends it, and SIGTERM."""
        before = {number: signal.signal(number, self._tell) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


PATIENCE = 0.1
"""How long the loop waits for a message before it looks whether it is to stop [s]."""

PLAUSIBLE = 3600.0
"""How far a stamp may be from the clock of this machine [s] to count as the time of publishing."""

SUSPICIOUS = 1e-3
"""Probability of readings that fit together as badly, below which their likeliest cause is reported."""

REMINDER = 10
"""Periods after which the same reason for leaving samples out is reported again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a live run goes.

    Attributes:
        topics: the topics to listen to, with the types of their messages.
        mapping: what ties their columns to the robot; None goes by usual names.
        options: how samples are estimated, as those of a log.
        lag: how many samples late estimates are, of a plan with memory.
        differentiate: how accelerations that nothing tells are made of velocities, see `live_derivative`; None refuses.
        prefix: what the topics of estimates begin with.
        queue: messages that wait, at most.
        period: time between two accounts [s].
    """

    topics: Mapping[str, str]
    mapping: LogMapping | None = None
    options: RunOptions = field(default_factory=RunOptions)
    lag: int = 0
    differentiate: Differentiate = AUTO
    prefix: str = PREFIX
    queue: int = LIMIT
    period: float = 1.0


class Service:
    """Estimates from a live stream, published again.

    Attributes:
        total: what was counted.
        publication: what is published.
        engine: what estimates; None until all streams were heard.
        measured_from: from when on latencies are.
        waiting_for: what is to be heard before estimates can begin.

    Args:
        transport: what carries messages.
        plans: the plan, or the plans of contact states.
        settings: how it goes.
        tell: takes lines about what goes wrong, and what is right again.
        watch: takes what was counted in each period, and in all.

    Raises:
        NoriError: the plan cannot be compiled, or not be used so.
    """

    def __init__(
        self,
        transport: Transport,
        plans: Plan,
        settings: Settings,
        tell: Callable[[str], None] = lambda line: None,
        watch: Callable[[Account, Account], None] = lambda period, total: None,
    ) -> None:
        self._settings, self._tell, self._watch = settings, tell, watch
        live_derivative(settings.differentiate, 0)  # what cannot be is refused at once
        self._solving = prepared(plans, settings.options, settings.lag)
        self._record = SampleRecord.of(self._solving.systems, self._solving.contacts)
        warm_up(self._solving, self._record)
        self.publication = Publication(
            transport, plans, settings.prefix, settings.options.monitor, self._solving.recognised
        )
        self._inbox = Inbox(settings.queue)
        self._topics = {name: LiveTopic(name, kind) for name, kind in settings.topics.items()}
        self._before: dict[str, Message] = {}
        self._state: State | None = None
        self.engine: Engine | None = None
        self.total, self._account = Account(), Account()
        self._reported = time.monotonic()
        self._reminders: Counter[str] = Counter()
        self._is_overloaded = False
        self.waiting_for = f"messages on {', '.join(settings.topics)}"
        self.measured_from = "the arrival of a message"
        for name, kind in settings.topics.items():
            transport.subscribe(name, kind, self._inbox.put)

    def run(
        self, is_over: Callable[[], bool] = lambda: False, seconds: float | None = None, samples: int | None = None
    ) -> Account:
        """Run until it is over, and return what was counted.

        Args:
            is_over: whether it is, looked at ten times a second and after each message.
            seconds: how long to run at most, from now [s].
            samples: how many estimates to publish at most.

        Raises:
            NoriError: the streams do not tell what the plan needs.
        """
        end = None if seconds is None else time.monotonic() + seconds
        enough = samples if samples is not None else float("inf")
        published = 0
        while not is_over() and published < enough:
            message = self._inbox.get(PATIENCE)
            if message is not None:
                published += self._take(message)
            now = time.monotonic()
            if now - self._reported >= self._settings.period:
                self._report(now)
            if end is not None and now >= end:
                break
        self._report(time.monotonic())
        return self.total

    def _take(self, message: Message) -> bool:
        """Take a message; whether it brought about an estimate."""
        start = time.perf_counter()
        topic, account = self._topics[message.topic], self._account
        account.messages += 1
        counts = account.streams.setdefault(message.topic, Counter())
        counts["received"] += 1
        arrived = 1e-9 * message.arrived
        try:
            if self._state is None:
                self._learn(topic, message)
            if self._state is None or self.engine is None or message.topic not in self._state.tracks:
                return False
            values = topic.numbers(message.payload, arrived)
        except MalformedMessage as error:
            counts["malformed"] += 1
            self._remind("malformed messages", f"a message on {message.topic} is malformed: {error}.")
            return False
        due = self._state.take(message.topic, values, arrived)
        if due is None:
            return False
        tick = self.engine.tick(self._state, due)
        if tick is not None:
            self.publication.publish(tick)
            self._judge(tick)
            account.estimates += 1
            account.latency.add(1e-9 * (time.time_ns() - self._sent(message, due)))
        took = time.perf_counter() - start
        account.work.add(took)
        account.overruns += took > self._state.period
        return tick is not None

    def _sent(self, message: Message, due: float) -> int:
        """When a message was published [ns since 1970], as well as that is known."""
        assert self._state is not None
        if message.sent is not None:
            self.measured_from = "publishing a message"
            return message.sent
        stamp = due + self._state.tracks[message.topic].bound.settings.delay
        if abs(stamp - 1e-9 * message.arrived) < PLAUSIBLE:
            self.measured_from = "the stamp of a message"
            return round(1e9 * stamp)
        self.measured_from = "the arrival of a message"
        return message.arrived

    def _judge(self, tick: LiveEstimate) -> None:
        """Count the sensor that readings which do not fit are likeliest due to, and collisions; tell of these."""
        if isinstance(tick.judged, Watched) and tick.judged.begins:
            reading, p = tick.judged.reading, max(tick.judged.probabilities.values())
            self._account.collisions[reading] += 1
            self._tell(f"collision at {tick.t:.3f} s, by {reading}, probability {number(p, 3)}")
        if isinstance(tick.judged, Recognised) and tick.judged.switch is not None:
            for link in {*tick.judged.contacts} & {*self._solving.touched}:
                at, p = tick.judged.point, tick.judged.probability_of(link)
                where = "" if at is None else f" at ({', '.join(number(x, 3) for x in at[:3].tolist())}) m,"
                self._account.collisions[link] += 1
                self._tell(f"touch at {tick.t:.3f} s on {link},{where} probability {number(p, 3)}")
        if isinstance(tick.judged, Diagnosis) and not tick.judged.is_consistent(SUSPICIOUS):
            for suspect in tick.judged.suspects(1):
                self._account.suspects[suspect.sensor] += 1

    def _learn(self, topic: LiveTopic, message: Message) -> None:
        """Learn from a message what its topic tells; begin when all that is needed is known.

        Raises:
            MalformedMessage: it is none.
        """
        is_new = topic.look(message.payload)
        self._before[message.topic] = message
        if not is_new:
            return
        try:
            binding = self._bound()
            if binding is not None:
                self._begin(binding, message.topic)
        except NoriError as error:  # another message may tell more
            self.waiting_for = str(error)

    def _bound(self) -> Binding | None:
        """Where each number comes from, as far as it is known; None where topics have not been heard.

        Raises:
            MappingError: what was heard does not fit the mapping.
        """
        silent = [name for name, topic in self._topics.items() if not topic.is_known]
        if silent:
            self.waiting_for = f"messages on {', '.join(silent)}"
            return None
        heard = [topic.stream for topic in self._topics.values()]
        columns: dict[str, Stream] = {column: stream for stream in heard for column in stream.columns}
        return bind(columns, self._settings.mapping, self._record, "the live stream")

    def _begin(self, binding: Binding, last: str) -> None:
        """Begin to estimate, with what was heard before on topics other than the last one.

        Raises:
            InputError: a number that is needed is in no message.
        """
        heard = [column for topic in self._topics.values() for column in topic.stream.columns]
        engine = Engine(self._solving, binding, self._settings.differentiate, heard)
        if not binding.streams:
            raise InputError("the mapping takes nothing from any topic, so that nothing says when to estimate")
        self.engine, engine.account = engine, self._account
        self._state = State(binding)
        for name, bound in binding.streams.items():
            self._topics[name].choose(bound.columns)
        for name, message in self._before.items():
            if name != last and name in binding.streams:
                arrived = 1e-9 * message.arrived
                with suppress(MalformedMessage):
                    self._state.take(name, self._topics[name].numbers(message.payload, arrived), arrived)
        self._before.clear()
        self.total.seconds, self._reported = 0.0, time.monotonic()
        self._tell(f"all is heard that is needed; the clock is {binding.reference}")
        if engine.made:
            self._tell(f"{len(engine.made)} accelerations are made by a Kalman filter a joint, which finds the noise")

    def _remind(self, what: str, line: str) -> None:
        """Tell of something that goes wrong: at first, and now and then while it goes on."""
        if self._reminders[what] <= 0:
            self._tell(line)
            self._reminders[what] = REMINDER

    def _report(self, now: float) -> None:
        """Close the account of a period: tell of it, and publish it."""
        account, self._account = self._account, Account()
        account.seconds, self._reported = now - self._reported, now
        account.dropped, lost = self._inbox.counted()
        for topic, n in lost.items():
            account.streams.setdefault(topic, Counter())["lost"] += n
        if self.engine is not None and self._state is not None:
            for topic, track in self._state.tracks.items():
                counts, back = account.streams.setdefault(topic, Counter()), track.counts.total() - track.counts["late"]
                counts.update(track.counts)
                track.counts.clear()
                if back > max(1, counts["received"] // 4):
                    self._remind(
                        f"times of {topic}",
                        f"of {counts['received']:,} messages on {topic} {back:,} are of the time of the one before or "
                        "an earlier one: do several publish there by clocks of their own, or do stamps stand still?",
                    )
            self.engine.account = self._account
            for reason in account.skipped:
                self._remind(reason, f"samples are left out: {self.engine.why}.")
        else:
            self._remind(self.waiting_for, f"waiting for {self.waiting_for}")
        self.total.join(account)
        self._reminders.subtract(dict.fromkeys(self._reminders, 1))
        self._tell_of_overload(account)
        self._watch(account, self.total)
        self.publication.tell(account, self.total, "" if self.engine else self.waiting_for)

    def _tell_of_overload(self, account: Account) -> None:
        if account.dropped:
            self._tell(
                f"overload: {account.dropped:,} messages dropped in {account.seconds:.1f} s, the oldest first, as the "
                f"queue of {self._inbox.limit} was full"
            )
        elif self._is_overloaded:
            self._tell("recovered: no message is dropped any more")
        self._is_overloaded = account.dropped > 0
