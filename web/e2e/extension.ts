// Chromium with the extension really loaded, on a profile of its own.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page, type Worker } from "playwright-core";

const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
const built = join(import.meta.dirname, "../dist-extension/chrome");
const out = join(import.meta.dirname, "__out__");

/** The parts of the extension interface that the tests look at. */
interface Chrome {
  action: {
    getBadgeText(of: object): Promise<string>;
    getTitle(of: object): Promise<string>;
  };
  notifications: {
    create(id: string, options: Notice): Promise<string>;
    clear(id: string): Promise<boolean>;
    getAll(): Promise<Record<string, boolean>>;
    onButtonClicked: { dispatch(id: string, button: number): void };
    onClicked: { dispatch(id: string): void };
  };
}

export interface Notice {
  title: string;
  message: string;
  buttons?: { title: string }[];
}

declare const chrome: Chrome;

export class Extended {
  readonly context: BrowserContext;
  readonly id: string;
  readonly #profile: string;

  private constructor(context: BrowserContext, id: string, profile: string) {
    this.context = context;
    this.id = id;
    this.#profile = profile;
  }

  static async open(): Promise<Extended> {
    if (!existsSync(built)) throw new Error("not built: run `npm run build:extension` first");
    const profile = mkdtempSync(join(tmpdir(), "meanwhile-extension-"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      ignoreDefaultArgs: ["--disable-extensions"],
      args: [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        `--disable-extensions-except=${built}`,
        `--load-extension=${built}`,
      ],
      locale: "en",
      viewport: { width: 400, height: 580 },
    });
    context.setDefaultTimeout(20_000);
    const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
    return new Extended(context, new URL(worker.url()).host, profile);
  }

  get origin(): string {
    return `chrome-extension://${this.id}`;
  }

  /** A page of the extension, looked at in a tab. */
  async page(path: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(`${this.origin}/${path}`);
    return page;
  }

  async worker(): Promise<Worker> {
    return this.context.serviceWorkers()[0] ?? (await this.context.waitForEvent("serviceworker"));
  }

  /** What the browser does to a worker it wants to be rid of. Returns once it has stopped. */
  async killWorker(from: Page): Promise<void> {
    const session = await this.context.newCDPSession(from);
    const stopped = new Promise<void>((resolve) => {
      session.on("ServiceWorker.workerVersionUpdated", ({ versions }) => {
        if (versions.some((version) => version.runningStatus === "stopped")) resolve();
      });
    });
    await session.send("ServiceWorker.enable");
    await session.send("ServiceWorker.stopAllWorkers");
    await stopped;
    await session.detach();
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

export function badgeOf(page: Page): Promise<string> {
  return page.evaluate(() => chrome.action.getBadgeText({}));
}

/** Keeps what the worker shows from now on. */
export async function listenForNotices(worker: Worker): Promise<void> {
  await worker.evaluate(() => {
    const made: Record<string, Notice> = {};
    const create = chrome.notifications.create.bind(chrome.notifications);
    Object.assign(globalThis, { made });
    chrome.notifications.create = (id, options) => {
      made[id] = options;
      return create(id, options);
    };
  });
}

export function noticesMade(worker: Worker): Promise<Record<string, Notice>> {
  return worker.evaluate(() => (globalThis as unknown as { made: Record<string, Notice> }).made);
}

export function noticesShown(page: Page): Promise<string[]> {
  return page.evaluate(async () => Object.keys(await chrome.notifications.getAll()));
}

/** As a person wipes it away. */
export function dismissNotice(page: Page, id: string): Promise<boolean> {
  return page.evaluate((key) => chrome.notifications.clear(key), id);
}

export function pressButton(worker: Worker, id: string, button: number): Promise<void> {
  return worker.evaluate(([key, n]) => chrome.notifications.onButtonClicked.dispatch(key, n), [
    id,
    button,
  ] as const);
}

export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(out, { recursive: true });
  await page.screenshot({ path: join(out, `${name}.png`) });
}
