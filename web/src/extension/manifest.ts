// The two manifests, from one description. Permissions are the fewest that work: no host is named,
// because the host itself says (http.origins) which extension may read its answers.

/** Fixes the extension's id, and so its origin, wherever it is loaded from. */
export const chromeKey =
  "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAuSPwUTMQ31C+9Gnb2mTSnZ1XwLrdumj+4t9/Z3aCoujWXj/sp7T205+ufZyQCS2IaA/zFovO9JkwIdfMpLEVOcbLQVk6xx5gavfbLO+1TOhplaNOmaX6cvKTyhBOs9ViSHmaRUvL7b1RkjNZf9VwMcehem1N5yPYBcwAqtC7s5KD89KkleVkHwovf2holtecTyYrBRfSKmjSohsa/0yjYYQZyY3I8r3SfA3PFFZl30ICXYvOJxniv+nvkJeiHGTf08LHvt3M4HnLA6c87jITKK5fEWhHHaLmsvxrNTrf0sJgYYl36hpFQqYcJX94RPbvKRLgGL9mp2cUVeaM1f0g/wIDAQAB";

export const geckoId = "inbox@meanwhile.invalid";

const policy =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self' http: https: ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const icons = Object.fromEntries([16, 32, 48, 128].map((size) => [size, `icons/${size}.png`]));

export function manifest(browser: "chrome" | "firefox", version: string): Record<string, unknown> {
  const common = {
    manifest_version: 3,
    name: "Meanwhile",
    description: "What your agents ask, one click away.",
    version,
    icons,
    action: { default_popup: "view.html?popup", default_icon: icons, default_title: "Meanwhile" },
    options_ui: { page: "options.html", open_in_tab: true },
    content_security_policy: { extension_pages: policy },
  };
  const permissions = ["storage", "alarms", "notifications"];
  if (browser === "chrome") {
    return {
      ...common,
      key: chromeKey,
      minimum_chrome_version: "116",
      permissions: [...permissions, "sidePanel"],
      background: { service_worker: "background.js", type: "module" },
      side_panel: { default_path: "view.html" },
    };
  }
  return {
    ...common,
    permissions,
    background: { scripts: ["background.js"], type: "module" },
    sidebar_action: {
      default_panel: "view.html",
      default_icon: icons,
      default_title: "Meanwhile",
      open_at_install: false,
    },
    browser_specific_settings: {
      gecko: {
        id: geckoId,
        strict_min_version: "128.0",
        data_collection_permissions: { required: ["none"] },
      },
    },
  };
}
