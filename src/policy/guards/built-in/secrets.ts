// §26.4: keys and tokens of usual providers do not go through.

import { type Decision, PASS } from '../decision.ts';
import type { GuardAction } from '../guard-config.ts';
import type { AskGuard } from '../run-guard.ts';
import { mapTexts } from './map-texts.ts';
import { SECRET_PATTERNS, type SecretPattern } from './secret-patterns.ts';

export const createSecretsGuard =
  (action: GuardAction): AskGuard =>
  ({ value }): Decision => {
    const found = new Set<string>();
    const redacted = mapTexts(value, (text) => redact(text, found));
    if (found.size === 0) return PASS;
    return action === 'redact'
      ? { kind: 'change', value: redacted }
      : {
          kind: 'refuse',
          message: `It contains what looks like a secret (${[...found].join(', ')}).`,
        };
  };

/** Shorter texts are no key of any provider. */
const MIN_LENGTH = 16;

function redact(text: string, found: Set<string>): string {
  if (text.length < MIN_LENGTH) return text;
  let redacted = text;
  const lowerCase = text.toLowerCase();
  for (const pattern of SECRET_PATTERNS) {
    if (mayContain(pattern.expression.ignoreCase ? lowerCase : text, pattern))
      redacted = replace(redacted, pattern, found);
  }
  return redacted;
}

const mayContain = (text: string, { marks }: SecretPattern): boolean =>
  marks.some((mark) => text.includes(mark));

const replace = (text: string, { name, expression }: SecretPattern, found: Set<string>): string =>
  text.replace(expression, (match: string, ...rest: unknown[]) => {
    found.add(name);
    const secret = readSecret(rest.at(-1)) ?? match;
    // What stands before a secret may be the same text by chance, what stands behind it is too short.
    const at = match.lastIndexOf(secret);
    return `${match.slice(0, at)}[redacted:${name}]${match.slice(at + secret.length)}`;
  });

/** The last argument is the groups, where an expression has some. */
const readSecret = (groups: unknown): string | undefined =>
  typeof groups === 'object' && groups !== null && 'secret' in groups
    ? String(groups.secret)
    : undefined;
