import { describe, expect, it } from "vitest";
import { ConnectionLost, RemoteError } from "./frame.ts";
import { post } from "./post.ts";

function answering(status: number, body: string) {
  const seen: { url: string; init: RequestInit }[] = [];
  const send = (async (url: string, init: RequestInit) => {
    seen.push({ url, init });
    return new Response(body, { status });
  }) as unknown as typeof fetch;
  return { seen, options: { url: "/rpc", token: "secret", fetch: send } };
}

describe("post", () => {
  it("carries the token in a header and one call in the body", async () => {
    const { seen, options } = answering(200, '{"jsonrpc":"2.0","id":1,"result":{"taken":true}}');
    expect(await post("remote/settle", { eventId: "e" }, options)).toEqual({ taken: true });
    expect(seen[0]?.url).toBe("/rpc");
    expect(new Headers(seen[0]?.init.headers).get("authorization")).toBe("Bearer secret");
    expect(JSON.parse(String(seen[0]?.init.body))).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "remote/settle",
      params: { eventId: "e" },
    });
  });

  it("passes a business error on", async () => {
    const body =
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m","data":{"code":"X"}}}';
    await expect(post("m", {}, answering(400, body).options)).rejects.toBeInstanceOf(RemoteError);
  });

  it("says that the outcome is unknown when there is no response frame", async () => {
    await expect(post("m", {}, answering(502, "<html>").options)).rejects.toBeInstanceOf(
      ConnectionLost,
    );
    const failing = (() => Promise.reject(new TypeError("net"))) as unknown as typeof fetch;
    await expect(post("m", {}, { url: "/rpc", token: "t", fetch: failing })).rejects.toBeInstanceOf(
      ConnectionLost,
    );
  });
});
