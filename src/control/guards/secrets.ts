// §26.4: guard against keys and tokens of common providers.

import { defineBuiltInGuard } from './define-guard.ts';
import {
  action,
  createTextJudge,
  type Form,
  type FoundText,
  type GuardAction,
} from './text-guard.ts';

export interface SecretsUse {
  readonly kind: 'secrets';
  readonly action: GuardAction;
}

export const secretsGuard = defineBuiltInGuard<SecretsUse>({
  kind: 'secrets',
  summary: 'finds keys and tokens',
  members: [action],
  read: ({ read }) => ({ kind: 'secrets', action: read(action) ?? 'redact' }),
  createJudge: (use) =>
    createTextJudge(
      {
        find: findSecrets,
        toMark: (name) => `[redacted:${name}]`,
        tell: (found) => `It contains what looks like a secret (${[...found].join(', ')}).`,
      },
      use.action,
    ),
});

// Forms of secrets, as documented by their providers. Each has a literal mark, so that no expression is tried at every character,
// and no part of an expression repeats another without a bound.

interface SecretPattern {
  /** The name in its replacement: `[redacted:github-token]`. */
  readonly name: string;
  /** Each such secret contains one of these; in lower case if the expression ignores case. */
  readonly marks: readonly string[];
  /** Global. The group `secret` is the secret; without one the whole match. */
  readonly expression: RegExp;
}

/** Not after a letter or digit. */
const START = '(?<![A-Za-z0-9])';

/** A secret that begins with one of `marks`, separated by spaces. */
function token(name: string, marks: string, rest: string): SecretPattern {
  const all = marks.split(' ');
  const begin = all.map(escapeRegExp).join('|');
  return { name, marks: all, expression: new RegExp(`${START}(?:${begin})${rest}`, 'g') };
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const SECRET_PATTERNS: readonly SecretPattern[] = [
  token('aws-access-key', 'AKIA ASIA', '[A-Z2-7]{16}(?![A-Za-z0-9])'),
  {
    name: 'aws-secret-key',
    marks: ['aws', 'secretaccesskey'],
    expression:
      /(?:aws[a-z_ -]{0,20}(?:secret|key)|secretaccesskey)[a-z_ -]{0,20}["'\\]{0,3}\s{0,3}[=:]\s{0,3}["'\\]{0,3}(?<secret>(?![0-9a-f]{40}(?![A-Za-z0-9/+]))[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/gi,
  },
  token('github-token', 'ghp_ gho_ ghu_ ghs_ ghr_', '[A-Za-z0-9]{36,255}'),
  token('github-token', 'github_pat_', '[A-Za-z0-9_]{36,255}'),
  token(
    'gitlab-token',
    'glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent-',
    '[A-Za-z0-9_.-]{20,300}',
  ),
  token(
    'slack-token',
    'xoxa- xoxb- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs- xapp-',
    '[A-Za-z0-9-]{10,300}',
  ),
  token(
    'slack-webhook',
    'https://hooks.slack.com/',
    '(?:services|workflows|triggers)/[A-Za-z0-9_/-]{20,200}',
  ),
  token('stripe-key', 'sk_live_ sk_test_ rk_live_ rk_test_', '[A-Za-z0-9]{16,255}'),
  token('stripe-webhook-secret', 'whsec_', '[A-Za-z0-9+/=]{24,128}'),
  token('anthropic-key', 'sk-ant-', '[A-Za-z0-9_-]{20,255}'),
  token('openai-key', 'sk-proj- sk-svcacct- sk-admin- sk-None-', '[A-Za-z0-9_-]{20,255}'),
  token('openai-key', 'sk-', '[A-Za-z0-9]{48}(?![A-Za-z0-9])'),
  token('openrouter-key', 'sk-or-v1-', '[a-f0-9]{64}'),
  token('google-api-key', 'AIza', '[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])'),
  token('google-oauth-token', 'ya29.', '[A-Za-z0-9_-]{20,2048}'),
  token('google-client-secret', 'GOCSPX-', '[A-Za-z0-9_-]{28}'),
  token('npm-token', 'npm_', '[A-Za-z0-9]{36}(?![A-Za-z0-9])'),
  token('pypi-token', 'pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw', '[A-Za-z0-9_-]{50,1000}'),
  token('rubygems-key', 'rubygems_', '[a-f0-9]{48}'),
  token('docker-token', 'dckr_pat_ dckr_oat_', '[A-Za-z0-9_-]{20,64}'),
  token('hugging-face-token', 'hf_ api_org_', '[A-Za-z]{34}(?![A-Za-z0-9])'),
  token('sendgrid-key', 'SG.', '[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{16,64}'),
  token('digitalocean-token', 'dop_v1_ doo_v1_ dor_v1_', '[a-f0-9]{64}'),
  token('databricks-token', 'dapi', '[a-f0-9]{32}(?:-\\d)?(?![a-f0-9])'),
  token('shopify-token', 'shpat_ shpca_ shppa_ shpss_', '[A-Fa-f0-9]{32}'),
  token('atlassian-token', 'ATATT3 ATCTT3', '[A-Za-z0-9_=-]{100,400}'),
  token('linear-key', 'lin_api_ lin_oauth_', '[A-Za-z0-9]{32,64}'),
  token('notion-token', 'ntn_', '[A-Za-z0-9]{40,60}'),
  token('vault-token', 'hvs. hvb. hvr.', '[A-Za-z0-9_-]{24,300}'),
  token('postman-key', 'PMAK-', '[a-f0-9]{24}-[a-f0-9]{34}'),
  token('grafana-token', 'glsa_', '[A-Za-z0-9]{32}_[a-f0-9]{8}'),
  token('grafana-token', 'glc_', '[A-Za-z0-9+/=]{32,400}'),
  token('new-relic-key', 'NRAK-', '[A-Z0-9]{27}'),
  token('sentry-token', 'sntrys_ sntryu_', '[A-Za-z0-9_+/=-]{40,400}'),
  {
    name: 'terraform-token',
    marks: ['.atlasv1.'],
    expression: /(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}/g,
  },
  token('age-key', 'AGE-SECRET-KEY-1', '[A-Z0-9]{58}'),
  {
    name: 'telegram-token',
    marks: [':AA'],
    expression: /(?<![A-Za-z0-9])\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])/g,
  },
  {
    name: 'azure-client-secret',
    marks: ['Q~'],
    expression:
      /(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])/g,
  },
  {
    name: 'azure-account-key',
    marks: ['AccountKey=', 'SharedAccessKey='],
    expression: /(?:AccountKey|SharedAccessKey)=(?<secret>[A-Za-z0-9+/]{43,86}={1,2})/g,
  },
  {
    name: 'private-key',
    marks: ['PRIVATE KEY'],
    // The rest of a truncated one is a secret, too.
    expression:
      /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----END)){0,20000}(?:-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?/g,
  },
  {
    name: 'json-web-token',
    marks: ['eyJ'],
    expression:
      /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,4096}\.eyJ[A-Za-z0-9_-]{10,16384}\.[A-Za-z0-9_-]{10,2048}/g,
  },
  {
    name: 'password',
    marks: ['://'],
    expression:
      /(?<![a-z])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@"'<>]{0,100}:(?<secret>[^\s/@"'<>]{3,200})@/gi,
  },
  {
    name: 'bearer-token',
    marks: ['bearer '],
    expression: /bearer\s{1,3}(?<secret>[A-Za-z0-9._~+/-]{20,4096}={0,2})/gi,
  },
];

/** No provider has shorter keys. */
const MIN_LENGTH = 16;
const NONE: readonly FoundText[] = [];

/** Names of members whose text is a secret without any other mark. */
const TELLING = /aws|secretaccesskey/i;

function findSecrets(text: string, _form: Form, name: string): readonly FoundText[] {
  if (text.length < MIN_LENGTH) return NONE;
  // Only the end of a name counts: it may be long, and apply to many strings.
  const before = `${name.slice(-64)}=`;
  if (!TELLING.test(before)) return findInText(text);
  return findInText(before + text).flatMap(({ start, end, ...found }) =>
    end <= before.length
      ? []
      : [{ ...found, start: Math.max(0, start - before.length), end: end - before.length }],
  );
}

function findInText(text: string): readonly FoundText[] {
  const stems = findStems(text);
  if (stems.size === 0) return NONE;
  return SECRET_PATTERNS.filter(({ marks }) => marks.some((mark) => stems.has(toStem(mark))))
    .flatMap((pattern) => findAll(text, pattern))
    .sort((a, b) => a.start - b.start);
}

const findAll = (text: string, { name, expression }: SecretPattern): readonly FoundText[] =>
  [...text.matchAll(expression)].map(({ 0: match, index, groups }) => {
    const secret = groups?.secret ?? match;
    // The text before a secret may match by chance; the text after it is too short.
    const start = index + match.lastIndexOf(secret);
    return { start, end: start + secret.length, name };
  });

// Searches for all marks at once: one after the other takes ten times as long.

const MARKS = [...new Set(SECRET_PATTERNS.flatMap(({ marks }) => marks))];
/** Marks that do not begin with another mark. */
const STEMS = MARKS.filter((mark) => !MARKS.some((one) => one !== mark && mark.startsWith(one)));
const IGNORING_CASE = new Set(
  SECRET_PATTERNS.flatMap(({ marks, expression }) => (expression.ignoreCase ? marks : [])),
);

const toStem = (mark: string): string => STEMS.find((stem) => mark.startsWith(stem)) ?? mark;

const toSource = (stem: string): string => {
  const escaped = escapeRegExp(stem);
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
    // Matches may overlap.
    ANY_STEM.lastIndex = match.index + 1;
  }
  return found;
}
