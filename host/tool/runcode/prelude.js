// What a program finds. The host evaluates this once, before the program, and
// keeps the function it yields: ("start", code) begins the program, ("settle",
// id, ok, text, name, code) answers a call. The program may break what it finds
// here; only it depends on that.
(() => {
  const { host } = globalThis;
  delete globalThis.host;
  const { stringify } = JSON;
  const AsyncFunction = (async () => {}).constructor;
  const waiting = new Map();
  let last = 0;

  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return describe(value);
    try {
      const text = stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v), 1);
      return text === undefined ? String(value) : text;
    } catch {
      try {
        return String(value);
      } catch {
        return "[a value that cannot be shown]";
      }
    }
  };
  const describe = (error) => {
    try {
      return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}` : show(error);
    } catch {
      return "an exception that cannot be shown";
    }
  };

  const call = (name, input) =>
    new Promise((resolve, reject) => {
      const id = String(++last);
      waiting.set(id, { resolve, reject });
      try {
        host("call", id, name, String(stringify(input === undefined ? {} : input)));
      } catch (refusal) {
        waiting.delete(id);
        if (typeof refusal !== "string") throw refusal;
        const [code, ...text] = refusal.split(": ");
        reject(Object.assign(new Error(text.join(": ")), { name: "RunCodeError", code }));
      }
    });
  const tools = {};
  for (const name of host("tools").split(" ")) if (name) tools[name] = (input) => call(name, input);
  Object.freeze(tools);

  const log = (...values) => void host("log", values.map(show).join(" "));
  const console = Object.freeze({ log, info: log, warn: log, error: log, debug: log });

  return (what, id, ok, text, name, code) => {
    if (what === "settle") {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (ok) resolve(text);
      else reject(Object.assign(new Error(text), { name, code }));
      return;
    }
    const failed = (error) => void host("failed", describe(error));
    try {
      new AsyncFunction("tools", "console", id)(tools, console)
        .then((value) => void host("done", value === undefined ? "" : show(value)))
        .then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  };
})();
