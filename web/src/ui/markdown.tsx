// Markdown to vnodes. Text from an agent is never HTML here: raw HTML is shown as the text it is,
// images are named and never loaded, links show their host and carry no referrer.

import type { Nodes, RootContent, Table } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Strings } from "./strings/index.ts";
import { linkHost, visible } from "./text.ts";

/** Beyond this the text is shown as it is: parsing must not freeze the page. */
export const markdownCharsMax = 200_000;
/** Blocks nested deeper than this are shown flat. */
const depthMax = 32;

export function Markdown({ text, strings }: { text: string; strings: Strings }): VNode {
  const tree = useMemo(() => {
    if (text.length > markdownCharsMax) return undefined;
    return fromMarkdown(text, {
      extensions: [gfmTable()],
      mdastExtensions: [gfmTableFromMarkdown()],
    });
  }, [text]);
  if (!tree) return <div class="md md-plain">{visible(text)}</div>;
  return (
    <div class="md" dir="auto">
      {all(tree.children, strings, 0)}
    </div>
  );
}

function all(nodes: readonly Nodes[], s: Strings, depth: number): ComponentChildren[] {
  return nodes.map((node) => one(node, s, depth));
}

function one(node: Nodes, s: Strings, depth: number): ComponentChildren {
  if (depth > depthMax) return "value" in node ? visible(node.value) : null;
  const inner = (): ComponentChildren[] =>
    "children" in node ? all(node.children as RootContent[], s, depth + 1) : [];
  switch (node.type) {
    case "text":
      return <span>{visible(node.value)}</span>;
    case "html":
      return <code class="md-html">{visible(node.value)}</code>;
    case "paragraph":
      return <p dir="auto">{inner()}</p>;
    case "heading":
      // A heading of the text is not one of the page, so its level starts below the card's own.
      return heading(node.depth, inner());
    case "emphasis":
      return <em>{inner()}</em>;
    case "strong":
      return <strong>{inner()}</strong>;
    case "inlineCode":
      return <code>{visible(node.value)}</code>;
    case "code":
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must be reachable by keys
        <pre dir="ltr" tabIndex={0}>
          <code>{visible(node.value)}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{inner()}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start ?? 1}>{inner()}</ol> : <ul>{inner()}</ul>;
    case "listItem":
      return <li dir="auto">{inner()}</li>;
    case "break":
      return <br />;
    case "thematicBreak":
      return <hr />;
    case "link":
      return <Link url={node.url} strings={s} label={inner()} />;
    case "image":
    case "imageReference":
      return (
        <span class="md-image">
          {s.imageOf(
            visible(node.alt ?? ""),
            node.type === "image" ? (linkHost(node.url)?.host ?? "") : "",
          )}
        </span>
      );
    case "table":
      return <MarkdownTable table={node} strings={s} depth={depth} />;
    case "definition":
      return null;
    default:
      // linkReference and whatever comes later: their text, without the link.
      return <span>{"value" in node ? visible(String(node.value)) : inner()}</span>;
  }
}

function heading(depth: number, inner: ComponentChildren[]): VNode {
  const level = `md-h md-h${depth}`;
  if (depth === 1) return <h3 class={level}>{inner}</h3>;
  if (depth === 2) return <h4 class={level}>{inner}</h4>;
  return <h5 class={level}>{inner}</h5>;
}

function Link(props: { url: string; strings: Strings; label: ComponentChildren }): VNode {
  const target = linkHost(props.url);
  if (!target) return <span>{props.label}</span>;
  return (
    <span class="md-link">
      <a href={target.href} target="_blank" rel="noopener noreferrer nofollow">
        {props.label}
      </a>
      <span class="md-host">{props.strings.linkTo(target.host)}</span>
    </span>
  );
}

function MarkdownTable(props: { table: Table; strings: Strings; depth: number }): VNode {
  const [head, ...rows] = props.table.children;
  const cells = (row: (typeof rows)[number]) => row.children;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must be reachable by keys
    <div class="md-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {(head ? cells(head) : []).map((cell) => (
              <th scope="col">{all(cell.children, props.strings, props.depth + 1)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {cells(row).map((cell) => (
                <td>{all(cell.children, props.strings, props.depth + 1)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
