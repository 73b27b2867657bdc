// The rows of the settings.

import type { VNode } from "preact";

export function Choice(props: {
  label: string;
  value: string;
  options: readonly [string, string][];
  onChoose: (value: string) => void;
}): VNode {
  return (
    <label class="setting">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Switch(props: {
  label: string;
  hint: string;
  on: boolean;
  children: (on: boolean) => void;
}): VNode {
  return (
    <label class="setting">
      <span>
        <span>{props.label}</span>
        {props.hint && <span class="faint">{props.hint}</span>}
      </span>
      <input
        type="checkbox"
        checked={props.on}
        onChange={(event) => props.children(event.currentTarget.checked)}
      />
    </label>
  );
}
