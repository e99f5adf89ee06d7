//<![CDATA[
// The robot at the time that one points at: its skeleton and what acts on it, in a projection that one can turn.
for (const figure of document.querySelectorAll(".skeleton")) {
  const robot = JSON.parse(document.getElementById("skeleton").textContent);
  const numbers = new Int16Array(Uint8Array.from(atob(robot.numbers), each => each.charCodeAt(0)).buffer);
  const [svg, slider, play] = ["svg", "input", "button"].map(name => figure.querySelector(name));
  const all = name => [...svg.querySelectorAll(name)];
  const [bones, joints, ground] = [".bones", ".joints", ".ground"].map(name => svg.querySelector(name));
  const [arrows, cones, discs, marks] = [".arrow", ".cone", ".disc", ".mark"].map(all);
  const [sizes, accused] = [".arrow-size", ".accused"].map(name => [...figure.querySelectorAll(`figcaption ${name}`)]);
  const stride = 3 * robot.points + 12 * arrows.length + discs.length + 2;
  let [turn, above] = robot.view;
  let frame = +slider.value;

  const draw = () => {
    const [c, s, low, high] = [Math.cos(turn), Math.sin(turn), Math.sin(above), Math.cos(above)];
    const seen = (x, y, z) => [robot.room * (c * y - s * x), robot.room * (low * (c * x + s * y) - high * z)];
    const at = frame * stride;
    const vector = k => seen(numbers[k], numbers[k + 1], numbers[k + 2]);
    const known = (k, n) => !numbers.subarray(k, k + n).includes(-32768);
    const told = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    const points = Array.from({length: robot.points}, (_, k) => vector(at + 3 * k));
    bones.setAttribute("d", robot.bones.map(([a, b]) => `M${told(points[a])}L${told(points[b])}`).join(""));
    joints.setAttribute("d", points.map(point => `M${told(point)}h0`).join(""));

    const place = at + 3 * robot.points;
    robot.arrows.forEach((arrow, k) => {
      const own = place + 12 * k;
      const [from, along] = [points[arrow.at], vector(own)];
      const tip = [from[0] + along[0], from[1] + along[1]];
      const length = Math.hypot(...along) || 1;
      const head = Math.min(4, length / 2);
      const [u, v] = [along[0] / length * head, along[1] / length * head];
      const sides = [[-u - v / 2, u / 2 - v], [-u + v / 2, -u / 2 - v]].map(([x, y]) => told([tip[0] + x, tip[1] + y]));
      const isKnown = known(own, 3) && length > 0.5;
      arrows[k].setAttribute("d", isKnown ? `M${told(from)}L${told(tip)}M${sides[0]}L${told(tip)}L${sides[1]}` : "");
      // the outline of an ellipsoid with half axes s_k: an ellipse, the points c cos + d sin of two conjugate half axes
      const axes = [0, 1, 2].map(j => vector(own + 3 + 3 * j));
      const sum = (f, g) => axes.reduce((total, each) => total + each[f] * each[g], 0);
      const [xx, xy, yy] = [sum(0, 0), sum(0, 1), sum(1, 1)];
      const wide = Math.sqrt(xx);
      const [lean, tall] = wide > 0 ? [xy / wide, Math.sqrt(Math.max(0, yy - xy * xy / xx))] : [0, Math.sqrt(yy)];
      const around = Array.from({length: 24}, (_, j) => [Math.cos(j * Math.PI / 12), Math.sin(j * Math.PI / 12)])
        .map(([x, y]) => told([tip[0] + wide * x, tip[1] + lean * x + tall * y]));
      cones[k].setAttribute("d", isKnown && known(own, 12) ? `M${around.join("L")}z` : "");
      const exact = [0, 1, 2].map(j => numbers[own + j]);
      const size = Math.hypot(...exact);
      const spread = Math.hypot(...[0, 1, 2].map(j => [0, 1, 2].reduce(
        (total, i) => total + numbers[own + 3 + 3 * j + i] * exact[i], 0))) / (2 * (size || 1));
      const to = x => number(+(x / robot.size * arrow.full).toPrecision(3));
      const sigma = known(own, 12) ? ` ± ${to(spread)}` : "";
      sizes[k].textContent = known(own, 3) ? `${to(size)}${sigma} ${arrow.unit}` : "not known";
    });
    robot.discs.forEach((point, k) => {
      const size = numbers[place + 12 * arrows.length + k];
      const [x, y] = points[point];
      for (const [name, value] of [["cx", x], ["cy", y], ["r", 9 * Math.sqrt(Math.max(size, 0) / robot.size)]]) {
        discs[k].setAttribute(name, value.toFixed(1));
      }
    });
    robot.suspects.forEach((suspect, k) => {
      const isNow = suspect.frames.some(([first, last]) => frame >= first && last >= frame);
      const [x, y] = points[suspect.at];
      marks[k].setAttribute("cx", x.toFixed(1));
      marks[k].setAttribute("cy", y.toFixed(1));
      marks[k].classList.toggle("now", isNow);
      accused[k].textContent = isNow ? "now" : "";
    });

    const [height, square] = robot.ground;
    const [east, north] = [numbers[at + stride - 2], numbers[at + stride - 1]];
    const reach = 4 * square;
    const ends = [-4, -3, -2, -1, 0, 1, 2, 3, 4].flatMap(k => [
      [[k * square - east, -reach - north], [k * square - east, reach - north]],
      [[-reach - east, k * square - north], [reach - east, k * square - north]],
    ]);
    ground.setAttribute("d", ends.map(([a, b]) => `M${told(seen(...a, height))}L${told(seen(...b, height))}`).join(""));
    figure.querySelector(".moment-shown").textContent = timeInWords(robot.at[frame]);
    slider.value = frame;
  };

  followers.push(x => {
    const later = robot.at.findIndex(each => each >= x);
    const next = later === -1 ? robot.at.length - 1 : later;
    frame = next > 0 && x - robot.at[next - 1] < robot.at[next] - x ? next - 1 : next;
    draw();
  });

  const go = k => {
    if (view[0] > robot.at[k] || robot.at[k] > view[1]) { reset.click(); }
    point((robot.at[k] - view[0]) / (view[1] - view[0]));
  };
  slider.addEventListener("input", () => go(+slider.value));

  let since = null;
  const lasts = 1000 * (log.unit === "s" ? Math.min(30, Math.max(6, log.span[1] - log.span[0])) : 10);
  const step = now => {
    if (since === null) { return; }
    const x = (now - since) / lasts * 10000;
    go(Math.max(0, robot.at.findLastIndex(each => x >= each)));
    if (x > 10000) { play.click(); } else { requestAnimationFrame(step); }
  };
  play.addEventListener("click", () => {
    since = since === null ? performance.now() - lasts * (frame + 1 >= robot.at.length ? 0 : robot.at[frame] / 10000) : null;
    play.textContent = since === null ? "play" : "stop";
    if (since !== null) { requestAnimationFrame(step); } else { leave(); }
  });

  const turned = (right, up) => {
    turn -= right;
    above = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, above + up));
    draw();
  };
  svg.addEventListener("pointerdown", event => svg.setPointerCapture(event.pointerId));
  svg.addEventListener("pointermove", event => {
    if (svg.hasPointerCapture(event.pointerId)) { turned(0.01 * event.movementX, 0.01 * event.movementY); }
  });
  svg.addEventListener("keydown", event => {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (by) { turned(by[0] / 8, by[1] / 8); event.preventDefault(); }
  });
  figure.querySelector(".playing").hidden = false;
  draw();
}
//]]>
