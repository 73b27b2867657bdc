// The real program on a data directory of its own, with a scripted model.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const binary = process.env.MEANWHILE ?? join(import.meta.dirname, "../../bin/meanwhile");
const startMaxMs = 20_000;
const run = promisify(execFile);

export interface HostOptions {
  script: unknown;
  args?: readonly string[];
}

export class Host {
  readonly dir = mkdtempSync(join(tmpdir(), "meanwhile-e2e-"));
  readonly #options: HostOptions;
  readonly #port: number;
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(options: HostOptions, port: number) {
    this.#options = options;
    this.#port = port;
    writeFileSync(join(this.dir, "script.json"), JSON.stringify(options.script));
    // A person's own settings must not reach into a test.
    writeFileSync(join(this.dir, "config.toml"), "");
  }

  static async start(options: HostOptions): Promise<Host> {
    if (!existsSync(binary)) throw new Error("bin/meanwhile is not built: run `make build` first");
    const host = new Host(options, await freePort());
    await host.up();
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  get log(): string {
    return this.#log;
  }

  /** Starts the program, again on the same data and the same port. */
  async up(): Promise<void> {
    const child = spawn(
      binary,
      [
        "serve",
        ...["--listen", `127.0.0.1:${this.#port}`],
        ...["--data", join(this.dir, "data")],
        ...["--script", join(this.dir, "script.json")],
        ...["--ask-mode", "timed"],
        ...["--config", join(this.dir, "config.toml")],
        ...(this.#options.args ?? []),
      ],
      { cwd: this.dir, stdio: ["ignore", "pipe", "pipe"] },
    );
    this.#process = child;
    child.stderr?.on("data", (data) => {
      this.#log += data;
    });
    const ready = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no login link: ${this.#log}`)), startMaxMs);
      child.stdout?.on("data", (data) => {
        this.#log += data;
        if (/#code=/.test(String(data))) {
          clearTimeout(timer);
          resolve();
        }
      });
      child.once("exit", (status) => {
        clearTimeout(timer);
        reject(new Error(`the host ended with ${status}: ${this.#log}`));
      });
    });
    await ready;
  }

  /** A login link that nobody has used. */
  async login(): Promise<string> {
    const { stdout } = await run(binary, ["login", "--data", join(this.dir, "data")]);
    return stdout.trim();
  }

  /** As a power cut ends it: no goodbye, nothing flushed. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
