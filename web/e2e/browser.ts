// Chromium, and what a person does in it.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  type Browser,
  type BrowserContext,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import type { Host } from "./host.ts";

const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
const out = join(import.meta.dirname, "__out__");

export async function launch(): Promise<Browser> {
  if (!existsSync(executablePath)) throw new Error(`no browser at ${executablePath}: set CHROMIUM`);
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

/** One person's device: signed in by a login link, with faults of the page kept for the end. */
export class Device {
  readonly page: Page;
  readonly faults: string[] = [];
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on("pageerror", (error) => this.faults.push(error.message));
    page.on("console", (message) => {
      // A host that was killed on purpose leaves failed connections in the console.
      if (
        message.type() === "error" &&
        !/ERR_CONNECTION|WebSocket|Failed to load/.test(message.text())
      ) {
        this.faults.push(message.text());
      }
    });
    page.setDefaultTimeout(20_000);
  }

  static async open(browser: Browser, host: Host, before?: (page: Page) => Promise<void>) {
    const context = await browser.newContext({
      locale: "en",
      viewport: { width: 1280, height: 900 },
    });
    const device = new Device(context, await context.newPage());
    await before?.(device.page);
    await device.page.goto(await host.login());
    await device.page.locator(".rail").waitFor();
    return device;
  }

  async close(): Promise<void> {
    await this.#context.close();
  }

  /** Starts a session by saying what should be done. */
  async say(text: string): Promise<void> {
    await this.page.goto(`${new URL(this.page.url()).origin}/#/sessions`);
    const field = this.page.locator("[data-new]");
    await field.fill(text);
    await field.press("Enter");
    await this.page.locator(".session").waitFor();
  }

  async openFirstSession(): Promise<void> {
    await this.page.goto(`${new URL(this.page.url()).origin}/#/sessions`);
    await this.page.locator("[data-list] [data-row]").first().click();
    await this.page.locator(".session").waitFor();
  }

  get card(): Locator {
    return this.page.locator("section.card");
  }

  get line(): Locator {
    return this.card.locator(".time-text");
  }

  get own(): Locator {
    return this.card.locator("[data-own]");
  }

  ask(state: string): Locator {
    return this.page.locator(`[data-ask="${state}"]`);
  }

  option(label: string): Locator {
    return this.card.locator(".opt", { hasText: label }).locator("input");
  }

  act(name: string): Locator {
    return this.card.locator(`[data-act="${name}"]`);
  }

  said(text: string | RegExp): Locator {
    return this.page.locator(".turns .n-text", { hasText: text });
  }

  /** Opens every disclosure of the transcript. */
  async unfold(): Promise<void> {
    const closed = this.page.locator('.fold[aria-expanded="false"]');
    for (let i = 0; i < 50 && (await closed.count()) > 0; i++) {
      await closed.first().click();
      await this.page.waitForTimeout(30);
    }
  }

  async picture(name: string): Promise<void> {
    mkdirSync(out, { recursive: true });
    await this.page.screenshot({ path: join(out, `${name}.png`) });
  }
}

/** Waits until the locator's text fits. */
export async function reads(locator: Locator, text: string | RegExp): Promise<void> {
  await locator.filter({ hasText: text }).first().waitFor();
}
