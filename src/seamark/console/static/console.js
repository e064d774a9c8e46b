// The console: a table of streams, and a live tail of one. One event stream per tab, no build step.
const TAIL_ROWS = 200;
const POLL_MS = 2000;

const $ = (id) => document.getElementById(id);
let source = null;
let selected = null;

function cell(text, numeric = false) {
  const td = document.createElement("td");
  td.textContent = text;
  if (numeric) td.className = "n";
  return td;
}

function row(stream) {
  const tr = document.createElement("tr");
  tr.setAttribute("aria-selected", String(stream.stream === selected));
  const name = document.createElement("td");
  const button = document.createElement("button");
  button.textContent = stream.stream;
  button.addEventListener("click", () => watch(stream.stream));
  name.append(button);
  tr.append(
    name,
    cell(stream.head.toLocaleString(), true),
    cell((stream.head - stream.synced).toLocaleString(), true),
    cell(stream.evict_floor > 1 ? stream.evict_floor.toLocaleString() : "–", true),
    cell(stream.count.toLocaleString(), true),
    cell(stream.bytes.toLocaleString(), true),
    cell(stream.settings.durability),
  );
  return tr;
}

function health(text, mood) {
  $("health").textContent = text;
  $("health").className = `pill ${mood}`;
}

async function refresh() {
  try {
    const ready = await fetch("/ready");
    health(ready.ok ? "ready" : "not ready", ready.ok ? "good" : "bad");
    const answer = await fetch("/raw");
    if (!answer.ok) {
      health(answer.status === 401 ? "an API key is required" : `error ${answer.status}`, "bad");
      return;
    }
    const { streams } = await answer.json();
    $("streams").replaceChildren(...streams.map(row));
    $("empty").hidden = streams.length > 0;
    if (selected === null && streams.length > 0) watch(streams[0].stream);
  } catch {
    health("no connection", "bad");
  }
}

function line(seq, text, className = "") {
  const li = document.createElement("li");
  const number = document.createElement("span");
  number.className = "seq";
  number.textContent = seq;
  const body = document.createElement("span");
  body.className = className;
  body.textContent = text;
  li.append(number, body);
  $("tail").prepend(li);
  while ($("tail").childElementCount > TAIL_ROWS) $("tail").lastElementChild.remove();
}

async function watch(name) {
  selected = name;
  if (source) source.close();
  $("tail").replaceChildren();
  $("tail-name").textContent = name;
  $("tail-state").textContent = "reading";
  const path = `/raw/${encodeURIComponent(name)}`;
  const state = await (await fetch(path)).json();
  if (selected !== name) return;
  source = new EventSource(`${path}/watch?after=${Math.max(0, (state.head ?? 0) - 50)}`);
  source.addEventListener("open", () => { $("tail-state").textContent = "live"; });
  source.addEventListener("error", () => { $("tail-state").textContent = "reconnecting: the browser resumes where it stopped"; });
  source.addEventListener("record", (event) => {
    const record = JSON.parse(event.data);
    line(record.seq, `${record.tag ? `[${record.tag}] ` : ""}${JSON.stringify(record.data)}`);
  });
  source.addEventListener("gap", (event) => {
    const gap = JSON.parse(event.data);
    line(`${gap.first}–${gap.last}`, `lost: ${gap.loss}`, "loss");
  });
  source.addEventListener("dropped", () => {
    $("tail-state").textContent = "the stream was removed";
    source.close();
  });
}

$("hint").textContent = `curl -X POST ${location.origin}/raw/demo -H 'Content-Type: application/json' -d '{"records":[{"data":{"hello":"world"}}]}'`;
await refresh();
setInterval(refresh, POLL_MS);
