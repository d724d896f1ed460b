/** Characters. Limits how much caller-supplied text is echoed. */
export const MAX_QUOTED = 400;

/** A value from elsewhere as JSON, cut where it is long, to be shown in a sentence. */
export function quote(value: unknown, maxLength = MAX_QUOTED): string {
  const text = toJson(value);
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** JSON nests as deep as it likes when it is parsed, not when it is written. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return 'a value that is nested too deep';
  }
}
