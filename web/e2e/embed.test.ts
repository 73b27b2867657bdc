// <meanwhile-inbox> in a page of another origin, against the real host.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Device, launch } from "./browser.ts";
import { picture } from "./extension.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

let browser: Browser;
let host: Host;
let desk: Device;
let listed: Server;
let stranger: Server;
let context: BrowserContext;
const faults: string[] = [];

// A page with a policy and a style of its own: neither may break the element.
function pageWith(host: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<style>h1{font:700 28px serif} button{background:hotpink;font-size:30px} p{color:red}</style>
<script type="module" src="${host}embed.js"></script></head>
<body style="margin:24px;background:#fff"><h1>Our dashboard</h1>
<meanwhile-inbox host="${host}" style="width:420px;height:560px;border:1px solid #ccc"></meanwhile-inbox>
<input id="mine" aria-label="Mine"></body></html>`;
}

async function serve(page: () => string): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.setHeader(
      "content-security-policy",
      `default-src 'none'; style-src 'unsafe-inline'; script-src 'wasm-unsafe-eval' ${host.url}; connect-src ${host.url} ${host.url.replace("http", "ws")}`,
    );
    response.end(page());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

async function openIn(server: Server): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(addressOf(server));
  return page;
}

beforeAll(async () => {
  browser = await launch();
  const empty = () => pageWith(host.url);
  listed = await serve(empty);
  stranger = await serve(empty);
  host = await Host.start({ script: script(), args: ["--origin", addressOf(listed)] });
  desk = await Device.open(browser, host);
  context = await browser.newContext({
    locale: "en",
    viewport: { width: 1000, height: 760 },
  });
});

afterAll(async () => {
  await desk?.close();
  await browser?.close();
  listed?.close();
  stranger?.close();
  await host?.stop();
});

describe("the embedded inbox", () => {
  it("signs in, takes an answer and keeps to itself", async () => {
    const page = await openIn(listed);
    const inbox = page.locator("meanwhile-inbox");
    await inbox.getByRole("heading", { name: "Sign in" }).waitFor();
    await inbox.getByRole("textbox").fill(await host.login());
    await inbox.getByRole("button", { name: "Sign in" }).click();
    // The list has come and stands, before anything is asked.
    await inbox.locator(".first").waitFor();
    await page.waitForTimeout(1_500);
    await desk.say("two things");
    await inbox.locator(".row-needs").last().waitFor();
    await picture(page, "embed-list");
    await inbox.locator(".row-needs").last().click();
    await inbox.getByText("then the agent carries on").waitFor();

    // Focus that moves inside the form stays the card's focus, also across the shadow boundary.
    await inbox.locator(".opt", { hasText: "Postgres" }).locator("input").focus();
    await inbox.getByText(/^Paused/).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.waitForTimeout(50);
    await inbox.getByText(/^Paused/).waitFor();
    await page.locator("#mine").focus();
    await inbox.getByText("then the agent carries on").waitFor();

    await inbox.locator(".opt", { hasText: "SQLite" }).locator("input").click();
    await inbox.getByText("What shall it be called?").waitFor();
    await inbox.locator("[data-own]").pressSequentially("jxh sessions");
    expect(await inbox.locator("[data-own]").inputValue()).toBe("jxh sessions");
    await picture(page, "embed-card");

    // Its own width decides, not the window's: list and card stand side by side when there is room.
    const list = inbox.locator(".pane-list");
    expect(await list.isVisible()).toBe(false);
    await inbox.evaluate((element) => {
      element.style.width = "900px";
    });
    await list.waitFor();
    await picture(page, "embed-wide");
    await inbox.locator("[data-own]").focus();

    // What the page styles does not reach in, and the page itself is as it was.
    const send = inbox.locator('[data-act="submit"]');
    expect(await send.evaluate((e) => getComputedStyle(e).backgroundColor)).not.toBe(
      "rgb(255, 105, 180)",
    );
    expect(await page.evaluate(() => [document.title, location.hash])).toEqual(["", ""]);
    expect(await page.locator("h1").evaluate((e) => getComputedStyle(e).fontSize)).toBe("28px");

    expect(faults).toEqual([]);
  });

  it("comes back with its draft when it is moved or the page is loaded again", async () => {
    const page = await openIn(listed);
    const inbox = page.locator("meanwhile-inbox");
    await desk.say("never mind the time");
    await inbox.locator(".row-needs.row-blocks").last().click();
    await inbox.locator("[data-own]").fill("my own words");
    await page.evaluate(() => {
      const element = document.querySelector("meanwhile-inbox") as HTMLElement;
      element.remove();
      document.body.append(element);
    });
    await inbox.locator(".row-needs.row-blocks").last().click();
    expect(await inbox.locator("[data-own]").inputValue()).toBe("my own words");
    await page.reload();
    await inbox.locator(".row-needs.row-blocks").last().click();
    expect(await inbox.locator("[data-own]").inputValue()).toBe("my own words");
    await inbox.locator('[data-act="submit"]').click();
    await desk.said("You chose my own words").waitFor();
    expect(faults).toEqual([]);
  });

  it("is nothing in a page that the host does not list", async () => {
    const page = await openIn(stranger);
    await page.waitForLoadState("networkidle");
    expect(await page.evaluate(() => customElements.get("meanwhile-inbox") === undefined)).toBe(
      true,
    );
  });
});
