// What each browser's store and loader would refuse, checked here. The built files have a check of
// their own in e2e.

import { describe, expect, it } from "vitest";
import { manifest } from "./manifest.ts";

const chrome = manifest("chrome", "0.1.0");
const firefox = manifest("firefox", "0.1.0");

describe("the manifests", () => {
  it("ask for no host, no tab and no history", () => {
    expect(chrome.permissions).toEqual(["storage", "alarms", "notifications", "sidePanel"]);
    expect(firefox.permissions).toEqual(["storage", "alarms", "notifications"]);
    for (const each of [chrome, firefox]) {
      expect(each).not.toHaveProperty("host_permissions");
      expect(each).not.toHaveProperty("optional_host_permissions");
      expect(each).not.toHaveProperty("content_scripts");
      expect(each).not.toHaveProperty("web_accessible_resources");
      expect(each).not.toHaveProperty("externally_connectable");
    }
  });

  it("run the module and nothing from elsewhere", () => {
    const { extension_pages: policy } = chrome.content_security_policy as Record<string, string>;
    expect(policy).toContain("script-src 'self' 'wasm-unsafe-eval';");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'/);
    expect(firefox.content_security_policy).toEqual(chrome.content_security_policy);
  });

  it("have each browser's own worker and side panel, and not the other's", () => {
    expect(chrome.background).toEqual({ service_worker: "background.js", type: "module" });
    expect(firefox.background).toEqual({ scripts: ["background.js"], type: "module" });
    expect(chrome).toHaveProperty("side_panel");
    expect(chrome).not.toHaveProperty("sidebar_action");
    expect(chrome).not.toHaveProperty("browser_specific_settings");
    expect(firefox).toHaveProperty("sidebar_action");
    expect(firefox).not.toHaveProperty("side_panel");
    expect(firefox).not.toHaveProperty("minimum_chrome_version");
    expect(firefox).not.toHaveProperty("key");
  });

  it("are of version 3, with a version that both stores take", () => {
    for (const each of [chrome, firefox]) {
      expect(each.manifest_version).toBe(3);
      expect(each.version).toMatch(/^\d+(\.\d+){0,3}$/);
      expect(String(each.name).length).toBeLessThanOrEqual(45);
      expect(String(each.description).length).toBeLessThanOrEqual(132);
    }
  });

  it("give Firefox an id and a version that knows all of it", () => {
    const { gecko } = firefox.browser_specific_settings as { gecko: Record<string, unknown> };
    expect(gecko.id).toMatch(/^[\w.+-]+@[\w.-]+$/);
    expect(Number(gecko.strict_min_version)).toBeGreaterThanOrEqual(112);
    expect(gecko.data_collection_permissions).toEqual({ required: ["none"] });
  });
});
