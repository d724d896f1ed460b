// §26.4: keys and tokens of usual providers do not go through.

import type { GuardAction } from '../guard-config.ts';
import type { AskGuard } from '../run-guard.ts';
import { createRunWork, type RunWork } from './run-work.ts';
import { SECRET_PATTERNS, type SecretPattern } from './secret-patterns.ts';
import { createTextGuard, type Found } from './text-guard.ts';

export const createSecretsGuard = (action: GuardAction, run: RunWork = createRunWork()): AskGuard =>
  createTextGuard(
    {
      find: findSecrets,
      toMark: (name) => `[redacted:${name}]`,
      tell: (found) => `It contains what looks like a secret (${[...found].join(', ')}).`,
    },
    action,
    run,
  );

/** Shorter texts are no key of any provider. */
const MIN_LENGTH = 16;
const NONE: readonly Found[] = [];

function findSecrets(text: string): readonly Found[] {
  if (text.length < MIN_LENGTH) return NONE;
  const stems = findStems(text);
  if (stems.size === 0) return NONE;
  return SECRET_PATTERNS.filter(({ marks }) => marks.some((mark) => stems.has(toStem(mark))))
    .flatMap((pattern) => findAll(text, pattern))
    .sort((a, b) => a.start - b.start);
}

const findAll = (text: string, { name, expression }: SecretPattern): readonly Found[] =>
  [...text.matchAll(expression)].map(({ 0: match, index, groups }) => {
    const secret = groups?.secret ?? match;
    // What stands before a secret may be the same text by chance, what stands behind it is too short.
    const start = index + match.lastIndexOf(secret);
    return { start, end: start + secret.length, name };
  });

// All marks are looked for at once: to look for one after the other takes ten times as long.

const MARKS = [...new Set(SECRET_PATTERNS.flatMap(({ marks }) => marks))];
/** Marks that begin with no other one. */
const STEMS = MARKS.filter((mark) => !MARKS.some((one) => one !== mark && mark.startsWith(one)));
const IGNORING_CASE = new Set(
  SECRET_PATTERNS.flatMap(({ marks, expression }) => (expression.ignoreCase ? marks : [])),
);

const toStem = (mark: string): string => STEMS.find((stem) => mark.startsWith(stem)) ?? mark;

const toSource = (stem: string): string => {
  const escaped = stem.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return IGNORING_CASE.has(stem)
    ? escaped.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
    : escaped;
};

const ANY_STEM = new RegExp(STEMS.map(toSource).join('|'), 'g');

function findStems(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  ANY_STEM.lastIndex = 0;
  for (let match = ANY_STEM.exec(text); match !== null; match = ANY_STEM.exec(text)) {
    const [stem] = match;
    found.add(STEMS.includes(stem) ? stem : stem.toLowerCase());
    // One may begin within another.
    ANY_STEM.lastIndex = match.index + 1;
  }
  return found;
}
