// The service worker and the settings that come with it, in the real program. Headless Chromium has
// no push service: a subscription fails there, and pushes are delivered by the browser's own
// debugging protocol instead. What is shown is read back from the worker's registration.

import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, CDPSession } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Device, launch, reads } from "./browser.ts";
import { Host } from "./host.ts";

const script = { name: "test", rules: [{ when: { last: "user" }, do: [{ text: "ok" }] }] };

let browser: Browser;
let host: Host;
let me: Device;

beforeAll(async () => {
  browser = await launch();
  host = await Host.start({ script, args: ["--notify-allow-private"] });
  me = await Device.open(browser, host);
  await me.page.context().grantPermissions(["notifications"], { origin: new URL(host.url).origin });
  // Controlled from the first visit on, as the worker claims its pages.
  await me.page.waitForFunction(() => navigator.serviceWorker.controller !== null);
});

afterAll(async () => {
  await me?.close();
  await browser?.close();
  await host?.stop();
});

/** Delivers a push as a push service would. */
async function push(payload: object): Promise<void> {
  const session: CDPSession = await me.page.context().newCDPSession(me.page);
  const registered = new Promise<string>((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const found = registrations.find((r) => !r.isDeleted && host.url.startsWith(r.scopeURL));
      if (found) resolve(found.registrationId);
    });
  });
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.deliverPushMessage", {
    origin: new URL(host.url).origin,
    registrationId: await registered,
    data: JSON.stringify(payload),
  });
  await session.detach();
}

interface Shown {
  title: string;
  body: string;
  tag: string;
}

async function shown(): Promise<Shown[]> {
  const worker = me.page.context().serviceWorkers()[0];
  if (!worker) throw new Error("no worker runs");
  return worker.evaluate(async () => {
    const { registration } = self as unknown as { registration: ServiceWorkerRegistration };
    const list = await registration.getNotifications();
    return list.map(({ title, body, tag }) => ({ title, body, tag }));
  });
}

const ask = { v: 1, kind: "arrived", key: "c:s1:c1", agent: "build-bot", count: 1 };

describe("the service worker", () => {
  it("shows one notification for an ask, replaced and not stacked, and takes it back", async () => {
    // In view, the page says it itself.
    await push({ ...ask });
    expect(await shown()).toEqual([]);
    await me.page.goto("about:blank");
    await push({ ...ask });
    await expect.poll(shown).toEqual([{ title: "build-bot", body: "1 question", tag: ask.key }]);
    await push({ ...ask, kind: "reminder" });
    await expect
      .poll(async () => (await shown()).map((n) => n.body))
      .toEqual(["Still open: 1 question"]);
    await push({ ...ask, kind: "settled", by: "Desk" });
    await expect.poll(async () => (await shown()).map((n) => n.body)).toEqual(["Answered by Desk"]);
    await push({ ...ask, key: "c:s1:c2", kind: "settled" });
    // Seen: what has nothing left to say goes.
    await me.page.goto(host.url);
    await expect.poll(shown).toEqual([]);
  });

  it("opens the page while the host is away", async () => {
    await me.page.goto(`${host.url}#/settings`);
    await me.page.locator(".settings").waitFor();
    await host.kill();
    await me.page.reload();
    await me.page.locator(".rail").waitFor();
    await me.page.locator(".settings").waitFor();
    await reads(me.page.locator("body"), /Offline\./);
    await host.up();
    await me.page.reload();
    await me.page.locator(".rail").waitFor();
  });
});

/** The push service of a browser, and the browser's own side of the encryption (RFC 8291). */
class PushService {
  readonly #keys = createECDH("prime256v1");
  readonly #auth = randomBytes(16);
  readonly #server: Server;
  readonly received: Promise<{ headers: IncomingHttpHeaders; plain: string }>;

  constructor() {
    this.#keys.generateKeys();
    let taken: (message: { headers: IncomingHttpHeaders; plain: string }) => void = () => {};
    this.received = new Promise((resolve) => {
      taken = resolve;
    });
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        response.writeHead(201).end();
        taken({ headers: request.headers, plain: this.#open(Buffer.concat(parts)) });
      });
    });
  }

  async subscription(): Promise<object> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = this.#server.address() as AddressInfo;
    return {
      endpoint: `http://127.0.0.1:${port}/push`,
      keys: {
        p256dh: this.#keys.getPublicKey("base64url"),
        auth: this.#auth.toString("base64url"),
      },
    };
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #open(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const sender = body.subarray(21, 21 + (body[20] ?? 0));
    const sealed = body.subarray(21 + sender.length);
    const derive = (key: Uint8Array, salt: Uint8Array, info: Uint8Array | string, size: number) =>
      Buffer.from(hkdfSync("sha256", key, salt, info, size));
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.#keys.getPublicKey(), sender]);
    const secret = derive(this.#keys.computeSecret(sender), this.#auth, info, 32);
    const key = derive(secret, salt, "Content-Encoding: aes128gcm\0", 16);
    const nonce = derive(secret, salt, "Content-Encoding: nonce\0", 12);
    const cipher = createDecipheriv("aes-128-gcm", key, nonce);
    cipher.setAuthTag(sealed.subarray(-16));
    const padded = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
    return padded.subarray(0, padded.lastIndexOf(2)).toString();
  }
}

describe("the settings", () => {
  it("subscribe the browser, and the host's push is what the worker shows", async () => {
    const service = new PushService();
    // Everything but the browser's own service, which needs the open internet.
    await me.page.evaluate(
      (subscription) => {
        PushManager.prototype.getSubscription = async () => null;
        PushManager.prototype.subscribe = async () =>
          ({ ...subscription, toJSON: () => subscription }) as unknown as PushSubscription;
      },
      await service.subscription(),
    );
    await me.page.goto(`${host.url}#/settings`);
    const row = me.page.locator("label.setting", { hasText: "Notifications" }).first();
    await row.locator("input").check();
    await reads(row, "On, also when no page is open");
    await me.page.locator('[data-target="push"]').waitFor();
    await me.page.locator('[data-act="test"]').click();
    const { headers, plain } = await service.received;
    expect(headers).toMatchObject({ "content-encoding": "aes128gcm", ttl: "0" });
    expect(headers.authorization).toMatch(/^vapid t=[\w-]+\.[\w-]+\.[\w-]+, k=[\w-]{87}$/);
    await push(JSON.parse(plain));
    await expect
      .poll(async () => (await shown()).map((n) => n.body))
      .toEqual(["Notifications reach this device."]);
    await row.locator("input").uncheck();
    service.close();
    await me.page.reload();
  });

  it("turn notifications on from a click and say how far they reach", async () => {
    await me.page.goto(`${host.url}#/settings`);
    const row = me.page.locator("label.setting", { hasText: "Notifications" }).first();
    await row.locator("input").check();
    // The browser has no push service here; the page says so and works while it is open.
    await reads(row, /Only while a page is open|On, also when no page is open/);
    await me.page.locator("label.setting", { hasText: "Quiet hours" }).locator("input").check();
    await me.page.locator('input[type="time"]').first().fill("23:30");
    const kept = await me.page.evaluate(async () => {
      const response = await (await caches.open("mw-device")).match("/device.json");
      return response?.json();
    });
    expect(kept).toMatchObject({ language: "en", quiet: "23:30-07:00", sound: true });
    await me.picture("settings-notify");
  });

  it("show a link as a QR code, which signs another device in once", async () => {
    await me.page.locator('[data-act="login"]').click();
    await me.page.locator("svg.qr").waitFor();
    const link = await me.page.locator(".login input").inputValue();
    await me.picture("settings-phone");
    const context = await browser.newContext({ userAgent: "Mozilla/5.0 (iPhone) Safari/605" });
    const phone = await context.newPage();
    await phone.goto(link);
    await phone.locator(".rail").waitFor();
    // It is listed, and goes when it is revoked.
    await me.page.goto(`${host.url}#/`);
    await me.page.goto(`${host.url}#/settings`);
    const row = me.page.locator("[data-token]", { hasText: "iOS" });
    await row.locator('[data-act="revoke"]').click();
    await row.locator('[data-act="sure"]').click();
    await row.waitFor({ state: "detached" });
    await phone.locator(".signin").waitFor();
    await context.close();
  });

  it("leave no fault on the page", () => {
    expect(
      me.faults.filter((fault) => !/push service|Push API|Registration failed/i.test(fault)),
    ).toEqual([]);
  });
});
