// The TypeScript SDK's client as a program that does what it is told: each line
// of standard input is one call, each line of standard output its outcome.
//
//   node client.mjs stdio COMMAND ARG…
//   node client.mjs http URL TOKEN
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [door, address, ...rest] = process.argv.slice(2)
const transport =
  door === 'stdio'
    ? new StdioClientTransport({ command: address, args: rest, env: process.env, stderr: 'inherit' })
    : new StreamableHTTPClientTransport(new URL(address), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}`, 'Meanwhile-Holder': 'ts', 'Meanwhile-Key': 'ts' } },
      })
const client = new Client({ name: 'ts-agent', version: '1' })
await client.connect(transport)
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)
// It keeps the tools' output schemas and checks each result against them.
say({ tools: (await client.listTools()).tools.map((t) => t.name) })

for await (const line of createInterface({ input: process.stdin })) {
  const { tool, args, timeout } = JSON.parse(line)
  try {
    const r = await client.callTool({ name: tool, arguments: args }, undefined, { timeout })
    say({ result: r.structuredContent, text: r.content.map((c) => c.text).join(''), error: r.isError === true })
  } catch (e) {
    say({ failed: String(e.message), code: e.code })
  }
}
await client.close()
