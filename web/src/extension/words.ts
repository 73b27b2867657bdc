// Sentences that only the extension needs, in the page's languages.

import type { Strings } from "../ui/strings/index.ts";

const en = {
  pairTitle: "Pair with Meanwhile",
  pairIntro: "This browser can show what your agents ask, count it on the button and tell you.",
  pairFirst: "Not paired with a host yet.",
  pairOpen: "Pair",
  stepAllow:
    "Let this extension in. Start the host with its origin, or add it to the settings file:",
  stepCode: "Ask the host for a login link, and paste it here. It works once.",
  hostAddress: "Address of the host",
  code: "Login link or code",
  pair: "Pair",
  unpair: "Forget this host",
  pairedWith: (host: string) => `Paired with ${host}`,
  unreachable:
    "No answer. Either the host is not running at this address, or it does not list this extension's origin yet.",
  badCode: "That code has been used already, or is not one of this host. Ask for a new one.",
  tooMany: "Too many attempts. Wait a minute, then try again.",
  odd: "Something answered at this address, but it is not Meanwhile.",
  badHost: "Write an address such as http://127.0.0.1:7331",
  noCode: "Paste the link that the command prints, or its code.",
  notices: "Notifications",
  noticesHint: "One for each question, taken back when it is settled.",
  settings: "Settings of the extension",
  sendOption: (label: string) => `Send: ${label}`,
  notSent: (label: string) => `Not sent: ${label}. Open to answer.`,
  needYou: (n: number) => (n === 1 ? "Meanwhile · 1 question" : `Meanwhile · ${n} questions`),
  quiet: "Meanwhile",
  offline: "Meanwhile · offline",
  unpaired: "Meanwhile · not paired",
};

export type Words = typeof en;

const zh: Words = {
  pairTitle: "与 Meanwhile 配对",
  pairIntro: "此浏览器可以显示代理的提问，在按钮上计数，并通知你。",
  pairFirst: "尚未与主机配对。",
  pairOpen: "配对",
  stepAllow: "允许此扩展连接。启动主机时带上它的来源，或写入设置文件：",
  stepCode: "向主机要一个登录链接，粘贴到这里。它只能用一次。",
  hostAddress: "主机地址",
  code: "登录链接或代码",
  pair: "配对",
  unpair: "忘记此主机",
  pairedWith: (host) => `已与 ${host} 配对`,
  unreachable: "没有回应。主机可能没有在此地址运行，或尚未列出此扩展的来源。",
  badCode: "该代码已被使用，或不属于此主机。请再要一个。",
  tooMany: "尝试过多。请等一分钟再试。",
  odd: "此地址有回应，但不是 Meanwhile。",
  badHost: "请填写类似 http://127.0.0.1:7331 的地址",
  noCode: "请粘贴命令输出的链接或代码。",
  notices: "通知",
  noticesHint: "每个问题一条，问题了结后撤回。",
  settings: "扩展设置",
  sendOption: (label) => `发送：${label}`,
  notSent: (label) => `未发送：${label}。请打开作答。`,
  needYou: (n) => `Meanwhile · ${n} 个问题`,
  quiet: "Meanwhile",
  offline: "Meanwhile · 离线",
  unpaired: "Meanwhile · 未配对",
};

export function wordsFor(s: Strings): Words {
  return s.locale.startsWith("zh") ? zh : en;
}
