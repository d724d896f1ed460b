import { integer, type Rule } from '../../rules.ts';

const MIN_MS = 1000;
const MAX_MS = 86_400_000;

const milliseconds = integer(MIN_MS, MAX_MS);

/** Milliseconds; some programs mean seconds, so a value that is too small for ours names both readings. */
export const timeoutRule: Rule<number> & { readonly min: number; readonly max: number } = {
  min: MIN_MS,
  max: MAX_MS,
  parse: milliseconds.parse,
  allowed: `milliseconds: ${milliseconds.allowed}`,
  explain(text) {
    const given = Number(text);
    return given > 0 && given < MIN_MS
      ? `Postern reads it as ${given} milliseconds; some programs mean ${given} seconds, which is ${given * 1000} here.`
      : undefined;
  },
};
