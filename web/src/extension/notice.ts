// What a notification says and what its buttons do.

import { agentName, type Card } from "../protocol/view.ts";
import type { Strings } from "../ui/strings/index.ts";
import { visible } from "../ui/text.ts";
import type { NoticeOptions } from "./api.ts";
import type { Words } from "./words.ts";

/** The option that the first button sends. */
export interface Offer {
  o: number;
  label: string;
}

const recommendedMark = /\s*\(Recommended\)\s*$/;

/**
 * Only one single-choice question can be answered by a button: there the button says all that will
 * be sent. A plan is to be read first, and what the person began to write is not thrown away.
 */
export function offerOf(card: Card): Offer | undefined {
  const question = card.questions?.[0];
  const open = card.state === "open" || card.state === "continued";
  if (!open || card.plan || card.edited || card.busy) return undefined;
  if (card.questions?.length !== 1 || !question || question.multi) return undefined;
  const options = question.options ?? [];
  const recommended = options.findIndex((option) => option.recommended);
  const o = Math.max(0, recommended);
  const option = options[o];
  return option && { o, label: option.label };
}

export function noticeOf(
  card: Card,
  s: Strings,
  w: Words,
  place: { icon: string; buttons: boolean },
): NoticeOptions & { offer?: Offer } {
  const offer = place.buttons ? offerOf(card) : undefined;
  return {
    type: "basic",
    iconUrl: place.icon,
    title: s.notifyTitle(agentName(card.agent) || s.someAgent, visible(card.header ?? "")),
    message: visible(card.text ?? ""),
    ...(offer
      ? {
          buttons: [
            { title: w.sendOption(visible(offer.label.replace(recommendedMark, ""))) },
            { title: s.open },
          ],
          offer,
        }
      : {}),
  };
}
