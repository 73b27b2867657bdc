// What a push says and offers. Twin of the payload in host/notify/push.go.

import type { Device } from "./device.ts";
import { isQuiet } from "./device.ts";

export interface Payload {
  v: 1;
  kind: "arrived" | "reminder" | "continued" | "settled" | "test";
  key: string;
  agent?: string;
  header?: string;
  text?: string;
  count?: number;
  by?: string;
  sessionId?: string;
  callId?: string;
  eventId?: string;
  questionId?: string;
  send?: string;
}

/** Beside what a page may show, a worker may offer buttons. */
export interface Notice {
  title: string;
  options: NotificationOptions & {
    renotify?: boolean;
    actions?: { action: string; title: string }[];
    data: Payload;
  };
}

const mark = /\s*\(Recommended\)\s*$/;

export const words = {
  en: {
    agent: "The agent",
    count: (n: number) => (n === 1 ? "1 question" : `${n} questions`),
    reminder: (text: string) => `Still open: ${text}`,
    continued: (text: string) => `Carried on, you can still answer: ${text}`,
    settled: (by: string) => (by ? `Answered by ${by}` : "Nothing left to do"),
    test: "Notifications reach this device.",
    send: (label: string) => `Send: ${label}`,
    open: "Open",
    sent: (label: string) => `Sent: ${label}`,
    notSent: "Not sent. Open the question to answer it.",
  },
  zh: {
    agent: "智能体",
    count: (n: number) => `${n} 个问题`,
    reminder: (text: string) => `仍在等你：${text}`,
    continued: (text: string) => `已先继续，仍可回答：${text}`,
    settled: (by: string) => (by ? `已由 ${by} 回答` : "无需再处理"),
    test: "本设备可以收到通知。",
    send: (label: string) => `发送：${label}`,
    open: "打开",
    sent: (label: string) => `已发送：${label}`,
    notSent: "未发送。请打开问题作答。",
  },
};

export function noticeOf(p: Payload, device: Device, minute: number): Notice {
  const w = words[device.language];
  const agent = p.agent || w.agent;
  const text = p.text || w.count(p.count ?? 1);
  const body = {
    arrived: text,
    reminder: w.reminder(text),
    continued: w.continued(text),
    settled: w.settled(p.by ?? ""),
    test: w.test,
  }[p.kind];
  // What only brings an older line up to date makes no noise; at night nothing does.
  const update = p.kind === "continued" || p.kind === "settled";
  const silent = update || !device.sound || isQuiet(device.quiet, minute);
  const offers = p.send !== undefined && p.questionId !== undefined && !update;
  return {
    title: p.kind === "test" ? "Meanwhile" : p.header ? `${agent} · ${p.header}` : agent,
    options: {
      body,
      tag: p.key,
      silent,
      renotify: p.kind === "reminder" && !silent,
      icon: "/icon-192.png",
      badge: "/badge.png",
      data: p,
      ...(offers
        ? {
            actions: [
              { action: "send", title: w.send((p.send ?? "").replace(mark, "")) },
              { action: "open", title: w.open },
            ],
          }
        : {}),
    },
  };
}

export function payloadOf(doc: unknown): Payload | undefined {
  if (typeof doc !== "object" || doc === null) return undefined;
  const p = doc as Partial<Payload>;
  if (p.v !== 1 || typeof p.key !== "string" || typeof p.kind !== "string") return undefined;
  return ["arrived", "reminder", "continued", "settled", "test"].includes(p.kind)
    ? (p as Payload)
    : undefined;
}
