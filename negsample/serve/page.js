"use strict";
// Every text of a user goes through textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const make = (tag, of = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(of)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "on") for (const [event, done] of Object.entries(value)) element.addEventListener(event, done);
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
};
const percent = share => `${Math.round(share * 100)} %`;
const figure = value => value === null || value === undefined ? "–" : value.toFixed(3);
const cut = (text, most) => text.length > most ? text.slice(0, most - 1).trimEnd() + "…" : text;
const say = (text, wrong = false) => {
  find("status").textContent = text;
  find("status").classList.toggle("wrong", wrong);
};

// --- what is shown
let records = [];
let shown = null;

function show(list) {
  records = list;
  const names = Object.keys(list.find(one => Object.keys(one.explanation.aspects).length)?.explanation.aspects ?? {});
  const heads = ["record", "score", ...names, "summary"].map(name =>
    make("th", {scope: "col", class: name === "record" || name === "summary" ? "" : "n", text: name}));
  find("records-head").replaceChildren(...heads);
  find("records-body").replaceChildren(...list.map(record => {
    const told = record.explanation;
    record.row = make("tr", {},
      make("td", {}, make("button", {type: "button", text: record.label, on: {click: () => choose(record, true)}})),
      ...[told.score, ...names.map(name => told.aspects[name])].map(value => make("td", {class: "n", text: figure(value)})),
      make("td", {dir: "auto", text: cut(record.summary, 140)}));
    return record.row;
  }));
  find("records").hidden = list.every(one => one.document === list[0].document);
  find("view").hidden = !list.length;
  if (list.length) choose(list[0], false);
}

// The summaries of the record's document side by side, and the document as the record's summary covers it.
function choose(record, move) {
  const group = records.filter(one => one.document === record.document);
  if (!shown || shown.document !== record.document || !group.includes(shown)) {
    find("view-title").textContent = group.length > 1 ? `${group.length} summaries of one document` : record.label;
    find("cards").replaceChildren(...group.map(one => one.card = card(one, group.length > 1)));
    find("source-text").scrollTop = 0;
    find("rests").textContent = "Choose a sentence of a summary to see what it rests on.";
  }
  shown = record;
  for (const one of records) {
    one.row.classList.toggle("shown", one === record);
    one.card?.classList.toggle("shown", one === record && group.length > 1);
  }
  source(record);
  if (move) {
    find("view").scrollIntoView({block: "start"});
    record.card.querySelector("[tabindex='0'], button")?.focus({preventScroll: true});
  }
}

function source(record) {
  const told = record.explanation.document;
  const most = Math.max(...told.map(one => one.weight), 1e-9);
  find("source-text").classList.toggle("raw", !told.length);
  record.sentences = told.map((one, place) => {
    const missing = record.explanation.missing.includes(place);
    const state = one.said ? "said in the summary" : missing ? "salient, and missing from the summary" : "not said in the summary";
    return make("span", {
      class: `unit ${one.said ? "said" : "left"}${missing ? " missing" : ""}`,
      "--weight": `${Math.round(12 + 63 * one.weight / most)}%`,
      title: `sentence ${place + 1}: ${state}; covered ${figure(one.covered)}, weight ${figure(one.weight)}`,
    }, make("span", {text: one.sentence}), make("span", {class: "said-only", text: ` (${state})`}));
  });
  find("source-text").replaceChildren(...(told.length ? record.sentences.flatMap(one => [one, " "]) : [record.document]));
}

function card(record, several) {
  const told = record.explanation;
  const parts = told.summary.map((one, place) => sentence(record, one, place));
  const title = make("h3", {}, make("span", {text: several ? record.label : "Summary"}));
  if (several && told.document.length) {
    title.append(make("button", {type: "button", text: "Show in document", on: {click: () => choose(record, false)}}));
  }
  return make("article", {class: "card"}, title, bars(told),
    make("div", {class: `text${parts.length ? "" : " raw"}`, dir: "auto"}, ...(parts.length ? parts.flatMap(one => [one, " "]) : [record.summary])),
    make("ul", {class: "notes"}, ...notes(told).map(text => make("li", {dir: "auto", text}))));
}

function bars(told) {
  const list = make("dl", {class: "bars"});
  for (const [name, value] of [["score", told.score], ...Object.entries(told.aspects)]) {
    const better = told.percentile?.[name];
    list.append(make("dt", {text: name}),
      make("dd", {class: "bar", "aria-hidden": "true"}, make("i", {"--value": `${100 * (value ?? 0)}%`})),
      make("dd", {class: "value", text: figure(value)}));
    if (better !== null && better !== undefined) list.append(make("dd", {class: "told", text: `above ${percent(better)} of real summaries`}));
  }
  return list;
}

function sentence(record, one, place) {
  // Places count whole Unicode characters, as a spread string does.
  const letters = [...one.sentence];
  const kinds = letters.map(() => "");
  for (const [kind, spans] of [["unsupported", one.unsupported_at], ["own", one.own_words_at], ["repeated", one.repeated_at]]) {
    for (const [begin, stop] of spans) for (let i = begin; i < stop; i++) kinds[i] += ` ${kind}`;
  }
  const press = () => rest(record, one, place);
  const element = make("span", {
    class: `unit${one.faults.length ? " fault" : ""}`, role: "button", tabindex: "0", "aria-pressed": "false",
    on: {click: press, keydown: event => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        press();
      }
    }},
  });
  for (let begin = 0, stop; begin < letters.length; begin = stop) {
    for (stop = begin + 1; stop < letters.length && kinds[stop] === kinds[begin]; stop++);
    const text = letters.slice(begin, stop).join("");
    element.append(kinds[begin] ? make("mark", {class: kinds[begin].trim(), text}) : text);
  }
  one.element = element;
  return element;
}

// What a sentence rests on, in the document and in words.
function rest(record, one, place) {
  if (shown !== record) choose(record, false);
  for (const other of record.explanation.summary) other.element.setAttribute("aria-pressed", String(other === one));
  const found = record.sentences[one.rests_on];
  for (const other of record.sentences) other.classList.toggle("rested", other === found);
  const pane = find("source-text");
  pane.scrollTop += found.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
  find("rests").textContent = `Sentence ${place + 1} rests on sentence ${one.rests_on + 1} of the document (support ${figure(one.support)}` +
    `${one.doubt === null ? "" : `; doubt ${figure(one.doubt)}`}): ` +
    cut(record.explanation.document[one.rests_on].sentence, 200);
}

function notes(told) {
  const out = told.reason ? [told.reason] : [];
  if (told.lowers) out.push(`What lowers it most: ${told.lowers}`);
  const unknown = [...new Set(told.summary.flatMap(one => one.unsupported))];
  if (unknown.length) out.push(`Not borne out by the document: ${unknown.join("; ")}`);
  told.summary.forEach((one, place) => {
    if (one.faults.length) out.push(`Sentence ${place + 1}: ${one.faults.join(", ")}`);
  });
  for (const [first, second] of told.repetitions.sentences) out.push(`Sentence ${second + 1} says again what sentence ${first + 1} says`);
  const again = [...new Set(told.summary.flatMap(one => one.repeated_at.map(([begin, stop]) => [...one.sentence].slice(begin, stop).join(""))))];
  if (again.length) out.push(`Said more than once: ${again.join("; ")}`);
  for (const place of told.missing) out.push(`Missing: ${cut(told.document[place].sentence, 120)}`);
  return out;
}

// --- records of a file
function parse(name, text) {
  text = text.replace(/^\ufeff/, "");
  if (/\.(csv|tsv)$/i.test(name)) {
    const [head, ...rows] = cells(text, /\.tsv$/i.test(name) ? "\t" : ",");
    return rows.map(row => Object.fromEntries(head.map((field, place) => [field, row[place]])));
  }
  if (text.trimStart().startsWith("[")) return JSON.parse(text);
  return text.split("\n").flatMap((line, place) => {
    if (!line.trim()) return [];
    try {
      return [JSON.parse(line)];
    } catch {
      throw new Error(`line ${place + 1} is no JSON`);
    }
  });
}

// RFC 4180: a cell in quotes may hold the separator, line ends, and quotes doubled. In TSV a quote is a letter.
function cells(text, separator) {
  const rows = [[]];
  const plain = `[^${separator}\\r\\n]*`;
  const quoted = separator === ",";
  const form = quoted ? `"(?:[^"]|"")*"|(?!")${plain}` : plain;
  const pattern = new RegExp(`(${form})(${separator}|\\r?\\n|\\r|$)`, "y");
  while (pattern.lastIndex < text.length) {
    const [, cell, end] = pattern.exec(text) ?? (() => { throw new Error(`a quote is not closed in record ${rows.length}`); })();
    rows.at(-1).push(quoted && cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end !== separator) rows.push([]);
  }
  return rows.filter(row => row.length > 1 || row[0]);
}

function label(record, place) {
  return ["id", "document_id", "system"].map(name => record[name]).filter(Boolean).join(" · ") || `record ${place + 1}`;
}

// --- the service
const MOST = 500;

async function ask(pairs) {
  const headers = {"Content-Type": "application/json"};
  if (data.token) headers.Authorization = `Bearer ${find("token").value}`;
  for (;;) {
    const body = JSON.stringify({pairs: pairs.map(({document, summary}) => ({document, summary}))});
    const answer = await fetch(`v1/${data.explains ? "explain" : "score"}`, {method: "POST", headers, body});
    const told = await answer.json();
    if (answer.ok) return told;
    if (answer.status !== 429) throw new Error(told.error);
    await new Promise(done => setTimeout(done, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
  }
}

// As many records as a request may hold; UTF-16 units of escaped text bound its bytes well enough at a sixth of the limit.
function* parts(list) {
  let part = [], size = 0;
  for (const record of list) {
    const own = record.document.length + record.summary.length;
    if (part.length && (part.length === data.limits.pairs || size + own > data.limits.body / 6)) {
      yield part;
      [part, size] = [[], 0];
    }
    part.push(record);
    size += own;
  }
  if (part.length) yield part;
}

async function score(list, left = "") {
  const buttons = [...document.querySelectorAll("#form button, #form input")];
  buttons.forEach(button => button.disabled = true);
  try {
    let done = 0;
    for (const part of parts(list)) {
      say(`Scoring ${done + 1} to ${done + part.length} of ${list.length} …`);
      const told = await ask(part);
      const plain = one => ({aspects: {}, document: [], missing: [], summary: [], repetitions: {sentences: [], phrases: []}, ...one,
        percentile: {score: one.percentile, ...one.aspect_percentiles}});
      part.forEach((record, place) => record.explanation = told.explanations?.[place] ?? plain(told.scores[place]));
      done += part.length;
    }
    say(`${list.length === 1 ? "1 summary" : `${list.length} summaries`} scored.${left}`);
    show(list);
  } catch (error) {
    say(error instanceof TypeError ? "The service does not answer; is it still running?" : error.message, true);
  } finally {
    buttons.forEach(button => button.disabled = false);
  }
}

async function open(file) {
  let list;
  try {
    list = parse(file.name, await file.text());
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
    return;
  }
  const whole = one => ["document", "summary"].every(name => typeof one?.[name] === "string" && one[name].trim());
  const good = list.map((one, place) => whole(one) && {document: one.document, summary: one.summary, label: label(one, place)}).filter(Boolean);
  const left = [];
  if (good.length < list.length) left.push(`${list.length - good.length} records have no document or no summary and were left out.`);
  if (good.length > MOST) left.push(`Only the first ${MOST} of ${good.length} are shown; negsample score reads all.`);
  if (good.length) await score(good.slice(0, MOST), ["", ...left].join(" "));
  else say(`${file.name}: no record has both a document and a summary.`, true);
}

if (data.served) {
  find("add").addEventListener("click", () => {
    const place = document.querySelectorAll("textarea.summary").length + 1;
    const area = make("textarea", {id: `summary-${place}`, class: "summary", rows: "4", dir: "auto"});
    find("summaries").append(make("label", {for: area.id, text: `Summary ${place}`}), area);
    area.focus();
  });
  find("form").addEventListener("submit", event => {
    event.preventDefault();
    const source = find("document").value;
    const given = [...document.querySelectorAll("textarea.summary")].map(area => area.value);
    const list = given.map((summary, place) => ({document: source, summary, label: `Summary ${place + 1}`}));
    score(list.filter(one => one.summary.trim()));
  });
  find("file").addEventListener("change", event => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) open(file);
  });
} else {
  show(data.records);
}
find("signature").textContent = `${data.signature} · negsample ${data.version}`;
