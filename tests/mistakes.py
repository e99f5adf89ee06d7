"""The mistakes of a first day, and what each prints: `python -m tests.mistakes` writes tests/data/mistakes.md."""

import contextlib
import io
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nori_dyn as nd
from benchmarks.urdf_writer import to_urdf
from nori_dyn.cli import main
from tests.unit.logs.test_reading import FOOT

DOCUMENT = Path(__file__).parent / "data" / "mistakes.md"

HEAD = """# Mistakes, and what they print

`arm.urdf` is an arm of three joints, `arm.plan` its plan for `inverse_dynamics`, and run.csv a log of its angles,
`angle[0]` to `angle[2]`, and of their rates. `python -m tests.mistakes` writes this file.
"""


@dataclass(frozen=True)
class Mistake:
    """A mistake: what it is, the command or the lines of Python that make it, and the file that has it."""

    title: str
    run: str
    file: str = ""
    content: str = ""


def config(*lines: str) -> str:
    return "name: mine\nmeasurements:\n" + "".join(f"  - {line}\n" for line in lines)


def parts(*lines: str) -> str:
    return "components:\n" + "".join(f"  - {line}\n" for line in lines)


def mapped(*entries: str) -> str:
    return "columns:\n" + "".join(f"  - {entry}\n" for entry in entries)


def each(run: str, file: str, told: dict[str, str]) -> tuple[Mistake, ...]:
    """The mistakes that one command meets in a file, by their titles."""
    return tuple(Mistake(title, run, file, content) for title, content in told.items())


INFO = "nori-dyn info arm.urdf --components mine.yaml"
OTHERS = ("{type: joint_acceleration, joints: all}", "{type: external_wrench, links: all, value: 0}")
INVERSE, PLAN = (f"nori-dyn plan arm.urdf --sensors {sensors}" for sensors in ("inverse_dynamics", "mine.yaml"))
ESTIMATES = "t,tau:joint1\n0,1\n0.1,2\n"
ESTIMATE = "nori-dyn estimate --plan arm.plan --input log.csv --out tau.csv"
MOTOR = "{type: rotor, joints: joint2, inertia: 2.0e-5}"
MAPPED = "nori-dyn estimate --plan arm.plan --input run.csv --mapping map.yaml --out tau.csv"
ANGLES, RATES = "{of: 'q:{joint}', from: 'angle[{k}]'}", "{of: 'qd:{joint}', from: 'rate[{k}]'}"
IDENTIFY = "nori-dyn identify log.csv --robot arm.urdf"
NAMES = ",".join(f"{kind}[{k}]" for kind in ("q", "qd", "qdd") for k in range(3))
ROW = "0.1,0.2,0.3,0,0,0,1,2,3"

MOVED = "\n".join([f"{NAMES},tau[0],tau[1],tau[2]", *(f"0.{k},0.2,0.3,1,0,0,1,2,3,4,{k},6" for k in range(4))])
"""A log with torques."""

RUN = "\n".join(
    [
        ",".join(f"{kind}[{k}]" for kind in ("angle", "rate") for k in range(3)),
        *(",".join(f"{x}" for x in (5 * k, 90 - k, 200 - 3 * k, 500, -100, -300)) for k in range(20)),
    ]
)

BOX = """<robot name="box"><link name="box"><inertial>
  <mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="-0.1" ixy="0" ixz="0" iyz="0"/>
</inertial></link></robot>
"""

MISTAKES = {
    "The command line": (
        Mistake("An option without what it needs", "nori-dyn plan arm.urdf"),
        Mistake("A file whose name is misspelt", "nori-dyn info amr.urdf"),
        Mistake("A robot whose name is misspelt", "nori-dyn info pandaa"),
        Mistake("A file that is no robot", "nori-dyn info page.xml", "page.xml", "<html/>"),
        Mistake("A robot of which nothing moves", "nori-dyn info box.urdf", "box.urdf", BOX),
        Mistake(
            "An inertia that no body has", "nori-dyn info box.urdf --base floating --inertias refuse", "box.urdf", BOX
        ),
        Mistake("A joint that does not exist", "nori-dyn info arm.urdf --lock joint4"),
        Mistake("A set of sensors that does not exist", "nori-dyn plan arm.urdf --sensors inverse_dynamic"),
        Mistake("A folder that does not exist", f"{INVERSE} --out plans/arm.plan"),
        Mistake("An output of no kind", f"{INVERSE} --outputs torque"),
        Mistake("An output of a frame that does not exist", f"{INVERSE} --outputs fx:tol"),
        Mistake("A robot where a plan is wanted", "nori-dyn estimate --plan arm.urdf --input log.csv --out tau.csv"),
        Mistake("A robot's model where candidates are wanted", "nori-dyn place arm.urdf --candidates arm.urdf"),
        Mistake("Contacts that are not chosen", "nori-dyn plan arm.urdf --sensors foot.yaml", "foot.yaml", "foot"),
        Mistake(
            "A picture of what was not estimated", "nori-dyn info tau.csv fx:link3 --plot tau.png", "tau.csv", ESTIMATES
        ),
    ),
    "Sets of sensors": each(
        PLAN,
        "mine.yaml",
        {
            "A field that is misspelt": config("{type: joint_torque, joints: all, sigmas: 0.1}"),
            "A field that is missing": config("{type: joint_torque}"),
            "A type that does not exist": config("{type: torque, joints: all}"),
            "Text where a number is wanted": config("{type: joint_torque, joints: all, sigma: 5 %}"),
            "A number that is out of range": config("{type: joint_torque, joints: all, sigma: 0}"),
            "A selector that is misspelt": config("{type: external_wrench, links: {exept: link3}, value: 0}"),
            "A link that does not exist": config(OTHERS[0], "{type: external_wrench, links: lnik3}"),
            "Indentation that is no YAML": "name: mine\nmeasurements:\n\t- {type: joint_torque}\n",
            "A list without a name": "- {type: joint_torque, joints: all}\n",
            "Too few sensors": config(OTHERS[0]),
            "Sensors that tell the same twice": config(
                "{type: joint_acceleration, joints: [joint1, joint2]}",
                "{type: link_acceleration, links: link1, components: [wz]}",
                OTHERS[1],
            ),
        },
    ),
    "Logs": (
        Mistake("A column that is missing", ESTIMATE, "log.csv", f"{NAMES.replace('qd[2]', 'speed')}\n{ROW}\n"),
        Mistake("No line of names", ESTIMATE, "log.csv", f"{ROW}\n{ROW}\n"),
        Mistake("A line of units", ESTIMATE, "log.csv", f"{NAMES}\n{','.join(['rad'] * 9)}\n{ROW}\n"),
        Mistake("Decimal commas", ESTIMATE, "log.csv", f'{NAMES}\n"0,1","0,2","0,3",0,0,0,1,2,3\n'),
        Mistake("A word among the numbers", ESTIMATE, "log.csv", f"{NAMES}\n{ROW}\n{ROW.replace('0.2', 'off')}\n"),
        Mistake("A line that is cut off", ESTIMATE, "log.csv", f"{NAMES}\n{ROW}\n0.1,0.2,0.3\n"),
        Mistake("An empty cell", ESTIMATE, "log.csv", f"{NAMES}\n{ROW}\n0.1,,0.3,0,0,0,1,2,3\n"),
        Mistake("No accelerations", ESTIMATE, "log.csv", "q[0],q[1],q[2],qd[0],qd[1],qd[2]\n0.1,0.2,0.3,0,0,0\n"),
        Mistake(
            "No time to differentiate by",
            f"{ESTIMATE} --differentiate 5",
            "log.csv",
            "q[0],q[1],q[2],qd[0],qd[1],qd[2]\n" + "0.1,0.2,0.3,0,0,0\n" * 5,
        ),
        Mistake("A window that has no middle", f"{ESTIMATE} --differentiate 10 --dt 0.01"),
        Mistake("A log of no format that is known", ESTIMATE.replace("log.csv", "log.doc"), "log.doc", "1 2 3"),
    ),
    "Mappings of logs": each(
        MAPPED,
        "map.yaml",
        {
            "A column that the log has not": mapped("{of: 'q:{joint}', from: 'angles[{k}]'}"),
            "A joint of another robot": mapped("{of: 'q:elbow', from: 'angle[0]'}"),
            "A unit of something else": mapped("{of: 'q:{joint}', from: 'angle[{k}]', unit: N}"),
            "A field of no entry": mapped("{of: 'q:{joint}', column: 'angle[{k}]'}"),
            "Something mapped twice": mapped(ANGLES, "{of: 'q:joint2', from: 'rate[0]'}"),
            "A stream that the log has not": f"streams: {{/imu: {{delay: 0.01}}}}\n{mapped(ANGLES)}",
            "Velocities that are not mapped": mapped(ANGLES),
            "Readings that are not mapped": mapped(ANGLES, RATES),
        },
    ),
    "Identifying a robot": (
        Mistake("A parameter that does not exist", f"{IDENTIFY} --parameters mass:link1", "log.csv", MOVED),
        Mistake("A log without torques", IDENTIFY, "log.csv", f"{NAMES}\n{ROW}\n{ROW}\n"),
        Mistake("A load on no link", f"{IDENTIFY} --loaded log.csv", "log.csv", MOVED),
        Mistake(
            "A load on a link that does not exist", f"{IDENTIFY} --loaded log.csv --load-on tool", "log.csv", MOVED
        ),
        Mistake("A known value without a name", f"{IDENTIFY} --known 2.5", "log.csv", MOVED),
        Mistake("A known mass of no load", f"{IDENTIFY} --known m:load=2.5", "log.csv", MOVED),
        Mistake("A known mass that no body has", f"{IDENTIFY} --known m:link3=-1", "log.csv", MOVED),
        Mistake("Gains of all sensors, and nothing known", f"{IDENTIFY} --parameters inertias,gains", "log.csv", MOVED),
        Mistake("A filter without times", f"{IDENTIFY} --cutoff 5", "log.csv", MOVED),
        Mistake("A filter above half the rate", f"{IDENTIFY} --cutoff 80 --dt 0.01", "log.csv", MOVED),
        Mistake("A log too short for its filter", f"{IDENTIFY} --cutoff 5 --dt 0.01", "log.csv", MOVED),
        Mistake("All of a log held out", f"{IDENTIFY} --held-out 1", "log.csv", MOVED),
        Mistake("A URDF to be written as another format", f"{IDENTIFY} --out found.xml", "log.csv", MOVED),
    ),
    "Components of a robot": (
        Mistake("A type that does not exist", INFO, "mine.yaml", parts("{type: lop, frames: [link3, link1]}")),
        Mistake("A field that does not exist", INFO, "mine.yaml", parts("{type: rotor, joint: all, inertia: 2.0e-5}")),
        Mistake("A negative inertia", INFO, "mine.yaml", parts("{type: rotor, joints: all, inertia: -2.0e-5}")),
        *each(f"{INFO} --lock joint2", "mine.yaml", {"A motor on a locked joint": parts(MOTOR)}),
        *each(
            INFO,
            "mine.yaml",
            {
                "A joint coupled with itself": parts("{type: coupling, joint: joint2, of: {joint2: 0.5}}"),
                "A loop between frames of one link": parts("{type: loop, frames: [link2, link2], constrains: point}"),
            },
        ),
        Mistake(
            "A loop between frames that cannot meet",
            "nori-dyn plan arm.urdf --sensors forward_dynamics --components mine.yaml",
            "mine.yaml",
            parts("{type: loop, frames: [link2, base], constrains: point}"),
        ),
    ),
    "Python": (
        Mistake("A robot where a system is wanted", "nd.plan(nd.autotree(3))"),
        Mistake("A name where a robot is wanted", 'nd.System("panda", "inverse_dynamics")'),
        Mistake("An array of another length", "plan.solver().solve(np.zeros(2), np.zeros(3), np.zeros(3))"),
        Mistake("What is no number", "plan.solver().solve(np.full(3, np.nan), np.zeros(3), np.zeros(3))"),
        Mistake(
            "A reading by a wrong name",
            'plan.solver().solve(np.zeros(3), np.zeros(3), {"qdd:joint_1": 0, "qdd:joint2": 0, "qdd:joint3": 0})',
        ),
        Mistake("What the plan was not asked for", "plan.solver().solve(np.zeros(3), np.zeros(3), np.zeros(3)).qdd"),
        Mistake("A backend that does not exist", 'plan.solver("numpi")'),
    ),
}


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """Work in a new folder with an arm and its plan, as wide as a pipe, and without colours."""
    before, columns = os.getcwd(), os.environ.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("arm.urdf").write_text(to_urdf(nd.autotree(3).replace(name="arm")).replace("link_link", "link"))
            nd.plan(nd.System(nd.load_urdf("arm.urdf"), "inverse_dynamics"), outputs=["tau"]).save("arm.plan")
            Path("run.csv").write_text(RUN)
            yield
        finally:
            os.chdir(before)
            if columns is not None:
                os.environ["COLUMNS"] = columns


def printed(mistake: Mistake) -> str:
    """What a mistake prints."""
    if mistake.file:
        import yaml

        Path(mistake.file).write_text(yaml.safe_dump(FOOT.to_dict()) if mistake.content == "foot" else mistake.content)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        if mistake.run.startswith("nori-dyn "):
            sys.argv, argv, show = shlex.split(mistake.run), sys.argv, warnings.showwarning
            try:
                main()
            except SystemExit as stopped:
                if stopped.code == 2:  # how to use it comes first, in the words of Typer
                    return output.getvalue().rpartition("\n\n")[2].strip()
            finally:
                sys.argv, warnings.showwarning = argv, show
        else:
            import numpy as np

            try:
                exec(mistake.run, {"nd": nd, "np": np, "plan": nd.Plan.load("arm.plan")})
            except nd.errors.NoriError as error:
                print(f"{type(error).__name__}: {error}")
    if mistake.file:
        Path(mistake.file).unlink()
    return output.getvalue().strip()


def document() -> str:
    """Run every mistake and write down what it prints."""
    parts = [HEAD]
    number = 0
    with workplace():
        for title, mistakes in MISTAKES.items():
            parts.append(f"## {title}\n")
            for mistake in mistakes:
                number += 1
                parts.append(f"**{number}. {mistake.title}**\n")
                if mistake.content and mistake.content != "foot":
                    parts.append(f"In {mistake.file}:\n\n```text\n{mistake.content.rstrip()}\n```\n")
                prompt = "$" if mistake.run.startswith("nori-dyn ") else ">>>"
                parts.append(f"```text\n{prompt} {mistake.run}\n{printed(mistake)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document())
