"use strict";
// Asks the server that sent this page. Whatever comes from it or from the user enters the page as text, never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const models = {};  // names by kind
  let key = "";       // in memory only

  /// An element with text, or with children.
  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  /// The JSON of a reply. Throws Error with the server's message; `status` is 0 where no reply came.
  async function ask(path, body) {
    const headers = {};
    if (body) headers["Content-Type"] = "application/json";
    if (key) headers.Authorization = "Bearer " + key;
    let reply;
    try {
      reply = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body)});
    } catch (error) {
      throw Object.assign(new Error("no reply from the server: " + error.message), {status: 0});
    }
    const text = await reply.text();
    let json = null;
    try {
      json = JSON.parse(text);
    } catch (error) {
      // a proxy's page, say
    }
    if (reply.ok && json !== null) return json;
    const told = json && json.error && (json.error.message || json.error);
    throw Object.assign(new Error(reply.status + ": " + (told || text.slice(0, 300) || reply.statusText)),
                        {status: reply.status});
  }

  const errorText = (error) => {
    const element = make("p", "error", error.message);
    element.setAttribute("role", "alert");
    return element;
  };

  const linesOf = (id) => byId(id).value.split("\n").map((line) => line.trim()).filter((line) => line);

  /// Two decimals, and no minus before zero.
  const fixed = (number) => number.toFixed(2).replace(/^-(?=0\.00$)/, "");

  function answerView(found, asked) {
    if (!found.answer) return [make("p", "answer", "No answer in the text"), make("p", "text", asked.context)];
    // Places are in code points; strings are in UTF-16 units.
    const text = Array.from(asked.context);
    const part = (begin, end) => text.slice(begin, end).join("");
    return [
      make("p", "answer", found.answer),
      make("p", "hint", "score " + found.score.toFixed(3)),
      make("p", "text", part(0, found.start), make("mark", "one", part(found.start, found.end)), part(found.end)),
    ];
  }

  function cosine(a, b) {
    let dot = 0, aa = 0, bb = 0;
    for (let i = 0; i < a.length; ++i) {
      dot += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
    return dot / Math.max(Math.sqrt(aa * bb), 1e-12);
  }

  function headCell(scope, text) {
    const cell = make("th", "", text);
    cell.scope = scope;
    return cell;
  }

  function heatView(found, asked) {
    const vectors = found.data.map((item) => item.embedding);
    const head = make("tr", "", headCell("col", "sentence"), ...vectors.map((_, i) => headCell("col", String(i + 1))));
    const rows = vectors.map((row, i) => {
      const cells = vectors.map((column) => {
        const value = cosine(row, column);
        const cell = make("td", value < 0 ? "below" : "", fixed(value));
        cell.style.setProperty("--share", Math.min(Math.abs(value), 1));
        return cell;
      });
      return make("tr", "", headCell("row", (i + 1) + "  " + asked.input[i]), ...cells);
    });
    const table = make("table", "heat", make("caption", "", "Cosine similarities"), make("thead", "", head),
                       make("tbody", "", ...rows));
    const region = make("div", "scroll", table);
    region.tabIndex = 0;  // scrolls by the keyboard
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "Cosine similarities");
    return [region];
  }

  function scoresTable(title, names, rows) {
    const head = make("tr", "", ...names.map((name) => headCell("col", name)));
    const lines = rows.map(([text, score]) => make("tr", "", make("td", "", text), make("td", "num", score.toFixed(3))));
    return [make("table", "ranks", make("caption", "", title), make("thead", "", head), make("tbody", "", ...lines))];
  }

  const tasks = {
    "question-answering": {
      path: "answer",
      request: () => ({question: byId("answer-question").value, context: byId("answer-context").value}),
      view: answerView,
    },
    "embedding": {
      path: "v1/embeddings",
      request: () => ({input: linesOf("embed-texts")}),
      view: heatView,
    },
    "reranker": {
      path: "rerank",
      request: () => ({query: byId("rank-query").value, texts: linesOf("rank-texts")}),
      view: (found, asked) => scoresTable("Best first", ["passage", "score"],
                                          found.map((rank) => [asked.texts[rank.index], rank.score])),
    },
    "classifier": {
      path: "predict",
      request: () => ({inputs: byId("class-text").value}),
      view: (found) => scoresTable("Best first", ["class", "score"], found.map((one) => [one.label, one.score])),
    },
  };

  /// Each model of the kind in turn, so that none takes the device from another's time.
  async function run(kind, results) {
    const task = tasks[kind];
    const asked = task.request();
    const cards = models[kind].map((name) => make("article", "card result", make("h3", "", name), make("p", "time", "...")));
    results.replaceChildren(...cards);
    for (const [i, name] of models[kind].entries()) {
      const card = cards[i];
      try {
        const begin = performance.now();
        const found = await ask(task.path, {...asked, model: name});
        const milliseconds = performance.now() - begin;
        card.lastChild.textContent = milliseconds.toFixed(milliseconds < 10 ? 1 : 0) + " ms";
        card.append(...task.view(found, asked));
      } catch (error) {
        card.lastChild.replaceWith(errorText(error));
        if (error.status === 401) askForKey(error);
      }
    }
  }

  function askForKey(error) {
    byId("key").hidden = false;
    if (key) byId("key-note").textContent = error.message;
    byId("key-text").focus();
  }

  /// What is served decides which sections show.
  let retry = 0;
  async function start() {
    clearTimeout(retry);
    const state = byId("state");
    state.className = "";
    try {
      const info = await ask("info");
      for (const kind of Object.keys(tasks)) models[kind] = [];
      for (const model of info.models) {
        const kind = Object.keys(model.model_type)[0];
        if (models[kind]) models[kind].push(model.name);
      }
      const listed = info.models.map((model) => model.name + " (" + Object.keys(model.model_type)[0] + ")");
      byId("models").textContent = "version " + info.version + ": " + listed.join(", ");
      byId("key").hidden = true;
      let shown = 0;
      for (const section of document.querySelectorAll("section[data-kind]")) {
        section.hidden = models[section.dataset.kind].length === 0;
        shown += section.hidden ? 0 : 1;
      }
      state.textContent = shown ? "" : "No model here answers, compares, ranks or classifies texts; /v2 takes tensors.";
    } catch (error) {
      if (error.status === 401) {
        state.textContent = "";
        return askForKey(error);
      }
      state.textContent = error.message;
      if (error.status !== 503) state.className = "error";
      clearTimeout(retry);
      retry = setTimeout(start, 2000);  // models are being loaded, or the server is restarting
    }
  }

  byId("key").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("key-text").value;
    if (/[^\x21-\x7e]/.test(text)) {  // which a header cannot hold
      byId("key-note").textContent = "A key has printable ASCII characters only.";
      return;
    }
    key = text;
    start();
  });
  for (const section of document.querySelectorAll("section[data-kind]")) {
    const form = section.querySelector("form");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (form.getAttribute("aria-busy") === "true") return;
      form.setAttribute("aria-busy", "true");
      try {
        await run(section.dataset.kind, section.querySelector(".results"));
      } finally {
        form.setAttribute("aria-busy", "false");
      }
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
  }
  start();
})();
