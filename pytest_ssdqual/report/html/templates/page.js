"use strict";
// Everything is there without this: it filters and sorts the promises, adds zoom and a read-out to charts, and opens what
// is folded before it is printed.
(() => {
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  for (const table of document.querySelectorAll("table[data-matrix]")) {
    const groups = [...table.tBodies];
    const words = make("input", { type: "search", placeholder: "raid5 randread …" });
    const kinds = ["fail", "inconclusive", "bounded", "pass"];
    const which = make("select", {}, make("option", { value: "", textContent: "all" }),
      ...kinds.map((kind) => make("option", { value: kind, textContent: kind })));
    const said = make("output", { className: "note" });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0, all = 0;
      for (const group of groups) {
        const name = group.rows[0].cells[0].textContent.toLowerCase();
        let found = 0;
        for (const row of group.querySelectorAll("table tbody tr")) {
          const text = `${name} ${row.textContent.toLowerCase()}`;
          row.hidden = !(wanted.every((word) => text.includes(word)) && (!which.value || row.querySelector(`.outcome.${which.value}`)));
          found += !row.hidden;
          all += 1;
        }
        shown += found;
        group.hidden = !found;
        group.querySelector("details").open = Boolean(found && (wanted.length || which.value));
      }
      said.textContent = `${shown} of ${all} promises`;
    };
    words.addEventListener("input", apply);
    which.addEventListener("change", apply);
    table.parentNode.before(make("div", { className: "filter" },
      make("label", {}, "Promises with", words), make("label", {}, "Outcome", which), said));
    apply();
    // A click on a column's head sorts by its margin, the least first; without one, last. A second click turns it round.
    let last = -1, way = 1;
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const sort = make("button", { type: "button", textContent: head.textContent, title: "Sort by this column" });
      head.replaceChildren(sort);
      const key = (group) => group.rows[0].cells[index].dataset.margin;
      sort.addEventListener("click", () => {
        way = last === index ? -way : 1;
        last = index;
        const order = (one, other) => !index
          ? way * one.rows[0].textContent.localeCompare(other.rows[0].textContent)
          : (!key(one) - !key(other)) || way * (key(one) - key(other));
        table.append(...groups.sort(order));
        for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      });
    });
  }

  for (const plot of document.querySelectorAll(".plot")) {
    const svg = plot.querySelector("svg");
    if (!svg || !svg.viewBox.baseVal.width) continue;
    const whole = { ...["x", "y", "width", "height"].reduce((box, name) => ({ ...box, [name]: svg.viewBox.baseVal[name] }), {}) };
    let box = { ...whole };
    const show = () => {
      svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
      plot.classList.toggle("zoomed", box.width < whole.width);
    };
    const inside = (value, least, most) => Math.min(Math.max(value, least), most);
    const move = (x, y) => {
      box.x = inside(x, whole.x, whole.x + whole.width - box.width);
      box.y = inside(y, whole.y, whole.y + whole.height - box.height);
      show();
    };
    const zoom = (factor, atX = 0.5, atY = 0.5) => {
      const width = inside(box.width * factor, whole.width / 20, whole.width);
      const height = whole.height * width / whole.width;
      const x = box.x + (box.width - width) * atX, y = box.y + (box.height - height) * atY;
      box = { x, y, width, height };
      move(x, y);
    };
    const reset = () => { box = { ...whole }; show(); };
    const share = (event) => {
      const at = svg.getBoundingClientRect();
      return [(event.clientX - at.left) / at.width, (event.clientY - at.top) / at.height];
    };
    const told = make("output", {});
    const button = (text, label, work) => {
      const made = make("button", { type: "button", textContent: text, onclick: work, tabIndex: -1 });
      made.setAttribute("aria-label", label);
      return made;
    };
    // One stop of the Tab key for each chart; arrows go from button to button, with Shift they move the picture.
    const buttons = [button("+", "Zoom in", () => zoom(0.7)), button("−", "Zoom out", () => zoom(1 / 0.7)),
      button("Reset", "Show the whole chart", reset)];
    buttons[0].tabIndex = 0;
    const tools = make("div", { className: "tools", role: "toolbar" }, ...buttons, told);
    tools.setAttribute("aria-label", `Zoom: ${svg.querySelector("title")?.textContent ?? ""}`);
    plot.after(tools);
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    tools.addEventListener("keydown", (event) => {
      const way = ways[event.key];
      if (!way || !(event.shiftKey || way[0])) return;
      event.preventDefault();
      if (event.shiftKey) {
        move(box.x + way[0] * box.width / 8, box.y + way[1] * box.height / 8);
        return;
      }
      const next = buttons[(buttons.indexOf(event.target) + way[0] + buttons.length) % buttons.length];
      for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    });
    addEventListener("beforeprint", reset);

    // A plain wheel scrolls the page, as everywhere.
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, ...share(event));
    }, { passive: false });
    svg.addEventListener("dblclick", reset);
    let from = null;
    svg.addEventListener("pointerdown", (event) => {
      if (box.width >= whole.width) return;
      from = { event, x: box.x, y: box.y };
      svg.setPointerCapture(event.pointerId);
    });
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { from = null; });

    let points = null;
    svg.addEventListener("pointermove", (event) => {
      if (from) {
        const at = svg.getBoundingClientRect();
        move(from.x - (event.clientX - from.event.clientX) / at.width * box.width,
          from.y - (event.clientY - from.event.clientY) / at.height * box.height);
        return;
      }
      points ??= [...svg.querySelectorAll("title")].filter((title) => title.parentNode !== svg);
      let nearest = null, least = 60;
      for (const title of points) {
        const at = title.parentNode.getBoundingClientRect();
        const away = Math.hypot((at.left + at.right) / 2 - event.clientX, (at.top + at.bottom) / 2 - event.clientY);
        if (away < least) [nearest, least] = [title, away];
      }
      told.textContent = nearest ? nearest.textContent : "";
    });
    svg.addEventListener("pointerleave", () => { told.textContent = ""; });
  }

  // On paper nothing can be unfolded. Browsers that know ::details-content need only the style sheet.
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) {
      details.open = true;
      opened.push(details);
    }
  });
  addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });

  const unfold = () => {
    for (let at = document.getElementById(location.hash.slice(1)); at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
