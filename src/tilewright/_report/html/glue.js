"use strict";
// Hands the data of each section to the package that draws it.
for (const table of document.querySelectorAll("table.sortable")) new Tablesort(table);
for (const place of document.querySelectorAll(".chart")) {
  const config = JSON.parse(place.querySelector("script").textContent);
  const label = (item) => item.raw.text ?? `${item.dataset.label}: ${item.formattedValue}`;
  config.options.plugins.tooltip.callbacks = { title: () => "", label };
  for (const scale of Object.values(config.options.scales).filter((s) => s.type === "logarithmic")) {
    // Powers of ten are enough where there are four.
    const shown = (far) => (far ? /^10*$|^0\.0*1$/ : /^[125]0*$|^0\.0*[125]$/);
    const text = (v, _, all) => (shown(all.at(-1).value > 1e3 * all[0].value).test(v) ? `${v}` : "");
    scale.ticks = { maxRotation: 0, callback: text };
  }
  const chart = new Chart(place.querySelector("canvas"), config);
  place.querySelector("button").addEventListener("click", () => chart.resetZoom());
}
for (const place of document.querySelectorAll(".flame")) {
  const data = JSON.parse(place.querySelector("script").textContent);
  const graph = flamegraph()
    .width(place.clientWidth)
    .cellHeight(20)
    .height(20 * place.dataset.depth)
    .transitionDuration(0)
    .minFrameSize(1)
    .inverted(true)
    .label((d) => d.data.text)
    .setDetailsElement(place.querySelector(".details"));
  d3.select(place.querySelector(".graph")).datum(data).call(graph);
  place.querySelector("button").addEventListener("click", () => graph.resetZoom());
  place.querySelector("input").addEventListener("input", (event) => {
    graph.search(event.target.value.replace(/[^\w\s]/g, "\\$&")); // it takes a pattern
  });
}
