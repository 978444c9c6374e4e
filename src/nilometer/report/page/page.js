"use strict";
// Draws the charts of this page with uPlot, and switches language and theme. Everything it needs stands in the page.
(() => {
  const root = document.documentElement;
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const HEIGHT = 250, PAPER_WIDTH = 660, FONT = "12px system-ui, sans-serif";
  const drawn = new Map(); // figure -> its uPlot
  const mains = [...document.querySelectorAll("main")];
  const languages = [...document.querySelectorAll("[data-language]")];
  const theme = document.getElementById("theme");
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  let onPaper = false;

  const shownMain = () => mains.find((main) => !main.hidden);
  const words = () => numbers.words[shownMain().id];
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

  function figure(value) {
    const decimals = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  }
  const withUnit = (value, unit) => figure(value) + (unit ? ` ${unit}` : "");

  // Points of one series as rows of their own, so that two requests at the same moment both stay.
  function rowsOf(plot) {
    const rows = [[plot.x[0], -1, null], [plot.x[1], -1, null]];
    plot.series.forEach((series, i) => series.x.forEach((x, at) => rows.push([x, i, series.y[at]])));
    rows.sort((a, b) => a[0] - b[0]);
    const columns = [rows.map((row) => row[0])];
    plot.series.forEach((_, i) => columns.push(rows.map((row) => (row[1] === i ? row[2] : undefined))));
    return columns;
  }

  // The value of a line at x, between its neighbours.
  function along(series, x) {
    const after = series.x.findIndex((at) => at >= x);
    if (after < 0) return null;
    if (after === 0 || series.x[after] === x) return series.x[after] > x ? null : series.y[after];
    const part = (x - series.x[after - 1]) / (series.x[after] - series.x[after - 1]);
    return series.y[after - 1] + part * (series.y[after] - series.y[after - 1]);
  }

  function pixels(u, x, y) {
    return [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
  }

  function pen(u, look) {
    const context = u.ctx;
    context.strokeStyle = context.fillStyle = colour(look.colour);
    context.lineWidth = 1.75 * devicePixelRatio;
    context.setLineDash(look.dash.map((length) => length * devicePixelRatio));
    return context;
  }

  function clipped(u, paint) {
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    paint();
    u.ctx.restore();
  }

  function drawMarks(u, series, look) {
    const context = pen(u, look), size = 2.5 * devicePixelRatio;
    context.globalAlpha = series.x.length > 600 ? 0.65 : 0.9;
    series.x.forEach((x, i) => {
      if (x < u.scales.x.min || x > u.scales.x.max) return;
      const [left, top] = pixels(u, x, series.y[i]);
      context.beginPath();
      if (look.shape === "cross") {
        context.moveTo(left - size, top - size); context.lineTo(left + size, top + size);
        context.moveTo(left + size, top - size); context.lineTo(left - size, top + size);
        context.stroke();
      } else {
        context.arc(left, top, size, 0, 2 * Math.PI);
        if (look.shape === "dot") context.fill(); else context.stroke();
      }
    });
  }

  function drawLine(u, series, look, steps) {
    const context = pen(u, look);
    context.beginPath();
    series.x.forEach((x, i) => {
      const [left, top] = pixels(u, x, series.y[i]);
      context.lineTo(left, top);
      if (steps) context.lineTo(pixels(u, i + 1 < series.x.length ? series.x[i + 1] : x + 1, 0)[0], top);
    });
    context.stroke();
  }

  function drawBands(u, plot, names) {
    clipped(u, () => {
      for (const band of plot.bands) {
        const [left] = pixels(u, band.begin, 0), [right] = pixels(u, band.end, 0);
        if (numbers.looks[band.look].shape === "band") {
          u.ctx.fillStyle = colour("band");
          u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
        } else {
          u.ctx.strokeStyle = colour("muted");
          u.ctx.lineWidth = devicePixelRatio;
          u.ctx.setLineDash([]);
          u.ctx.strokeRect(left, u.bbox.top - 4, right - left, u.bbox.height + 8);
        }
      }
    });
    nameBands(u, plot, names);
  }

  function nameBands(u, plot, names) {
    u.ctx.save();
    u.ctx.font = FONT.replace("12px", `${11 * devicePixelRatio}px`);
    u.ctx.fillStyle = colour("muted");
    u.ctx.textAlign = "center";
    for (const band of plot.bands) {
      const left = Math.max(pixels(u, band.begin, 0)[0], u.bbox.left);
      const right = Math.min(pixels(u, band.end, 0)[0], u.bbox.left + u.bbox.width);
      const name = names[band.look];
      if (u.ctx.measureText(name).width < right - left) {
        u.ctx.fillText(name, (left + right) / 2, u.bbox.top - 4 * devicePixelRatio);
      }
    }
    u.ctx.restore();
  }

  function drawAll(u, plot) {
    clipped(u, () => {
      for (const series of plot.series) {
        const look = numbers.looks[series.look];
        if (look.shape === "line") drawLine(u, series, look, series.look === "line"); else drawMarks(u, series, look);
      }
      u.ctx.globalAlpha = 1;
      for (const level of plot.levels) {
        const context = pen(u, numbers.looks[level.look]);
        context.beginPath();
        context.moveTo(...pixels(u, level.begin, level.y));
        context.lineTo(...pixels(u, level.end, level.y));
        context.stroke();
      }
    });
  }

  function read(u, plot, chart, out) {
    const row = u.cursor.idx;
    if (row == null) { out.textContent = ""; return; }
    const x = u.data[0][row], said = [];
    plot.series.forEach((series, i) => {
      const here = u.data[i + 1][row];
      const value = here == null && numbers.looks[series.look].shape === "line" ? along(series, x) : here;
      const name = chart.names[series.look];
      if (value != null) said.push((name ? `${name} ` : "") + withUnit(value, chart.units[1]));
    });
    if (said.length) out.textContent = `${withUnit(x, chart.units[0])}: ${said.join("; ")}`;
  }

  function options(box, plot, chart, out) {
    const axis = {
      stroke: () => colour("muted"), font: FONT, labelFont: FONT, labelSize: 20, labelGap: 0,
      grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1, size: 4 },
      values: (_, splits) => splits.map((value) => (value == null ? "" : value.toLocaleString("en-US"))),
    };
    const highest = Math.max(...plot.series.flatMap((series) => series.y));
    const top = (most) => (most >= highest ? plot.y[1] : most) || 1;
    return {
      width: box.clientWidth, height: HEIGHT, padding: [18, 10, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: {
        x: { time: false },
        y: { range: (u, _, most) => [0, top(most) * (plot.y[1] === 100 ? 1 : 1.06)] }, // lower where the highest is not seen
      },
      axes: [{ ...axis, label: chart.x, size: 28, space: 60 }, { ...axis, label: chart.y, size: 56, space: 34 }],
      series: [{}, ...plot.series.map(() => ({ paths: () => null, points: { show: false }, spanGaps: true }))],
      hooks: {
        drawClear: [(u) => drawBands(u, plot, chart.names)],
        draw: [(u) => drawAll(u, plot)],
        setCursor: [(u) => read(u, plot, chart, out)],
      },
    };
  }

  function moveTo(u, row) {
    const at = Math.min(Math.max(row, 0), u.data[0].length - 1);
    u.setCursor({ left: u.valToPos(u.data[0][at], "x"), top: 10 });
  }

  function zoom(u, plot, factor) {
    const { min, max } = u.scales.x, middle = u.cursor.idx == null ? (min + max) / 2 : u.data[0][u.cursor.idx];
    const half = ((max - min) * factor) / 2;
    u.setScale("x", { min: Math.max(middle - half, plot.x[0]), max: Math.min(middle + half, plot.x[1]) });
  }

  function onKey(event, u, plot) {
    const row = u.cursor.idx ?? 0, step = event.shiftKey ? 1 : Math.max(1, Math.round(u.data[0].length / 50));
    const act = {
      ArrowLeft: () => moveTo(u, row - step), ArrowRight: () => moveTo(u, row + step),
      Home: () => moveTo(u, 1), End: () => moveTo(u, u.data[0].length - 2),
      "+": () => zoom(u, plot, 0.5), "=": () => zoom(u, plot, 0.5), "-": () => zoom(u, plot, 2),
      0: () => u.setScale("x", { min: plot.x[0], max: plot.x[1] }),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  function draw(holder) {
    const box = holder.querySelector(".plot"), out = holder.querySelector(".readout");
    const plot = numbers.plots[holder.dataset.plot], chart = words().charts[holder.dataset.plot];
    const u = new uPlot(options(box, plot, chart, out), rowsOf(plot), box);
    box.onkeydown = (event) => onKey(event, u, plot);
    drawn.set(holder, u);
  }

  function drawShown() {
    for (const u of drawn.values()) u.destroy();
    drawn.clear();
    for (const holder of shownMain().querySelectorAll("[data-plot]")) draw(holder);
  }

  function fit() {
    for (const [holder, u] of drawn) {
      const width = onPaper ? PAPER_WIDTH : holder.querySelector(".plot").clientWidth;
      if (width && width !== u.width) u.setSize({ width, height: HEIGHT });
    }
  }

  function show(language) {
    for (const main of mains) main.hidden = main.id !== language;
    for (const button of languages) button.setAttribute("aria-pressed", String(button.dataset.language === language));
    root.lang = words().lang;
    document.title = words().title;
    const skip = document.getElementById("skip");
    skip.textContent = words().skip;
    skip.href = `#${language}`;
    document.getElementById("languages").setAttribute("aria-label", words().languages);
    nameTheme();
    drawShown();
  }

  function nameTheme() {
    theme.textContent = isDark() ? words().light : words().dark;
  }

  function repaint() {
    nameTheme();
    for (const u of drawn.values()) u.redraw(false);
  }

  function paper(on) {
    if (on === onPaper) return;
    onPaper = on;
    if (on) { root.dataset.before = root.dataset.theme ?? ""; root.dataset.theme = "light"; }
    else if (root.dataset.before) root.dataset.theme = root.dataset.before;
    else delete root.dataset.theme;
    fit();
    repaint();
  }

  for (const button of languages) button.onclick = () => show(button.dataset.language);
  theme.onclick = () => { root.dataset.theme = isDark() ? "light" : "dark"; repaint(); };
  systemDark.addEventListener("change", repaint);
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  new ResizeObserver(fit).observe(document.body);
  document.getElementById("controls").hidden = false;
  root.dataset.scripted = "";
  drawShown();
  nameTheme();
})();
