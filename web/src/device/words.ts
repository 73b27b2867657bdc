// The words of the parts of the settings that load with them.

import type { Strings } from "../ui/strings/index.ts";

const en = {
  pushOn: "On, also when no page is open.",
  pageOnly: "On while a page is open. This browser or this address allows no more.",
  pushFailed: (why: string) => `Only while a page is open: ${why}`,
  sound: "Sound",
  quiet: "Quiet hours",
  quietHint: "Notifications make no sound, and an open page shows none.",
  from: "From",
  to: "To",
  test: "Send a test",
  tested: (n: number) => (n === 1 ? "Sent to 1 place." : `Sent to ${n} places.`),
  channels: "Where the host tells of questions",
  noChannels: "Nowhere beside this page yet.",
  textStays: "The text of questions does not leave the host.",
  textLeaves: "The text of questions is sent along.",
  works: (n: number) => `works · ${n} sent`,
  failing: (why: string) => `not working: ${why}`,
  kinds: { webhook: "Webhook", ntfy: "ntfy", push: "Device" } as Record<string, string>,
  phone: "Answer from a phone",
  phoneHint: "The link signs one device in, once, within ten minutes.",
  showLink: "Show a link",
  newLink: "New link",
  localOnly: "This address works on this machine alone. Start the host with --public-url first.",
  qr: "The sign-in link as a QR code",
  copy: "Copy",
  tokens: "Devices and agents with access",
  thisDevice: "this device",
  revoke: "Revoke",
  sure: (label: string) => `Revoke ${label}`,
  keep: "Keep",
  plainText: "Answers are stored on the host in plain text.",
};

type Words = typeof en;

const zh: Words = {
  pushOn: "已开启，未打开页面时也会通知。",
  pageOnly: "仅在页面打开时通知。此浏览器或此地址不支持更多。",
  pushFailed: (why) => `仅在页面打开时通知：${why}`,
  sound: "声音",
  quiet: "免打扰时段",
  quietHint: "通知不出声，已打开的页面不弹通知。",
  from: "从",
  to: "到",
  test: "发送测试",
  tested: (n) => `已发往 ${n} 处。`,
  channels: "主机通知问题的去处",
  noChannels: "除本页面外暂无。",
  textStays: "问题文字不会离开主机。",
  textLeaves: "问题文字会一并发出。",
  works: (n) => `正常 · 已发 ${n} 条`,
  failing: (why) => `不可用：${why}`,
  kinds: { webhook: "Webhook", ntfy: "ntfy", push: "设备" },
  phone: "用手机回答",
  phoneHint: "链接可让一台设备登录一次，十分钟内有效。",
  showLink: "显示链接",
  newLink: "新链接",
  localOnly: "此地址只在本机有效。请先以 --public-url 启动主机。",
  qr: "登录链接的二维码",
  copy: "复制",
  tokens: "有访问权的设备和智能体",
  thisDevice: "本设备",
  revoke: "撤销",
  sure: (label) => `撤销 ${label}`,
  keep: "保留",
  plainText: "回答以明文保存在主机上。",
};

export function wordsFor(s: Strings): Words {
  return s.locale.startsWith("zh") ? zh : en;
}
