// Findings of `postern doctor`, and the checks that make them.

import { getErrorCode } from '../../platform/error-code.ts';
import { FetchError } from '../../platform/fetch-with-limits.ts';
import { describeCause } from '../../platform/log.ts';

/** `unknown`: it could not be found out. This is printed, and does not count as a failure. */
export type Status = 'ok' | 'warning' | 'failure' | 'unknown';

export interface Finding {
  /** Stable: programs, and docs/doctor.md, know it by this name. */
  readonly check: string;
  readonly status: Status;
  /** A sentence: what was seen. No secret is in it. */
  readonly what: string;
  /** The meaning, where `what` does not say it. */
  readonly why?: string;
  /** The setting to change; several are separated by commas. */
  readonly setting?: string;
  readonly remedy?: string;
}

export type Advice = Pick<Finding, 'why' | 'setting' | 'remedy'>;

/** One row of the table of checks. What it throws is a finding of its own. */
export interface Check<Subject> {
  readonly section: string;
  /** For a check that can only run while the store answers: what is unknown otherwise, to follow "Not known:". */
  readonly needsStore?: string;
  readonly run: (subject: Subject) => Promise<Found>;
}

/** Gives `run` its type. */
export const defineCheck = <Subject>(check: Check<Subject>): Check<Subject> => check;

/** Said once for all checks that begin a login. */
export const LOGIN_NEEDS_STORE = 'whether users can log in';

/** One thing, several or nothing. */
export type Found = Finding | undefined | readonly (Finding | undefined)[];

/** Makes findings of one status: what was seen, alone or with what to do about it. */
const createFindingOf =
  (status: Status) =>
  (check: string, seen: string | (Pick<Finding, 'what'> & Advice)): Finding => ({
    check,
    status,
    ...(typeof seen === 'string' ? { what: seen } : seen),
  });

export const ok = createFindingOf('ok');
export const warning = createFindingOf('warning');
export const failure = createFindingOf('failure');
export const unknown = createFindingOf('unknown');

export const hasFailure = (findings: readonly Finding[]): boolean =>
  findings.some(({ status }) => status === 'failure');

/** The name of the check that finds settings under a name that Postern does not know. */
export const MISSPELLED = 'settings.misspelled';

export type Report = (section: string, finding: Finding) => void;

/** One after the other, so that a person can read along, and no server is flooded. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
  report: Report,
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (const { section, run } of checks) {
    for (const finding of await runOne(run, subject)) {
      report(section, finding);
      all.push(finding);
    }
  }
  return all;
}

/** A check that fails itself says nothing of what it was to check. */
async function runOne<Subject>(
  run: Check<Subject>['run'],
  subject: Subject,
): Promise<readonly Finding[]> {
  try {
    return [await run(subject)].flat().filter((finding) => finding !== undefined);
  } catch (error) {
    return [
      unknown(
        'check-failed',
        `what comes next: it could not be checked (${describeCause(error)}).`,
      ),
    ];
  }
}

// Why another server could not be reached, in words.

export type FailureKind =
  | 'name'
  | 'refused'
  | 'timeout'
  | 'certificate-expired'
  | 'certificate-name'
  | 'certificate'
  | 'no-tls'
  | 'tls-only'
  | 'proxy'
  | 'other';

interface Sign {
  readonly pattern: RegExp;
  readonly kind: FailureKind;
  /** A sentence. `reason` is what the system says. */
  readonly describe: (url: URL, reason: string) => string;
  readonly scheme?: 'http:';
}

/** The first that fits counts. */
const SIGNS: readonly Sign[] = [
  {
    pattern: /\bProxyError\b/,
    kind: 'proxy',
    describe: ({ host }, reason) =>
      `The outbound proxy did not let a request to ${host} through (${reason}).`,
  },
  {
    pattern: /ENOTFOUND|EAI_AGAIN|ENODATA/,
    kind: 'name',
    describe: ({ hostname }) => `The name ${hostname} cannot be resolved here (DNS).`,
  },
  {
    pattern: /CERT_HAS_EXPIRED/,
    kind: 'certificate-expired',
    describe: ({ host }) => `The TLS certificate of ${host} has expired.`,
  },
  {
    pattern: /ALTNAME_INVALID/,
    kind: 'certificate-name',
    describe: ({ host, hostname }, reason) =>
      `The TLS certificate of ${host} is not for ${hostname} (${/DNS:.*/.exec(reason)?.[0] ?? reason}).`,
  },
  {
    pattern: /CERT|SELF_SIGNED|UNABLE_TO_/,
    kind: 'certificate',
    describe: ({ host }, reason) =>
      `The TLS certificate of ${host} is not trusted here (${reason}).`,
  },
  {
    pattern: /ECONNREFUSED/,
    kind: 'refused',
    describe: ({ host }) => `Nothing listens at ${host}.`,
  },
  {
    pattern: /aborted due to timeout/,
    kind: 'timeout',
    describe: ({ host }) => `${host} does not answer in time.`,
  },
  {
    pattern: /ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/,
    kind: 'timeout',
    describe: ({ host }, reason) => `${host} cannot be reached (${reason}).`,
  },
  {
    pattern: /SSL|EPROTO|wrong version/i,
    kind: 'no-tls',
    describe: ({ host }) => `${host} does not speak TLS there.`,
  },
  {
    // A server that wants TLS resets plain HTTP.
    pattern: /ECONNRESET/,
    kind: 'tls-only',
    scheme: 'http:',
    describe: ({ host }) => `${host} does not speak plain HTTP there.`,
  },
];

export function describeNetworkFailure(error: unknown, url: string) {
  const address = new URL(url);
  // A FetchError says only that the URL failed, and the URL may have any words in it.
  const cause = error instanceof FetchError ? error.cause : error;
  const reason = describeCause(cause);
  const signs = [reason, ...listCodes(cause)].join(' ');
  const found = SIGNS.find(
    ({ pattern, scheme = address.protocol }) => scheme === address.protocol && pattern.test(signs),
  );
  return found === undefined
    ? { kind: 'other' as const, text: `${address.host} could not be asked (${reason}).` }
    : { kind: found.kind, text: found.describe(address, reason) };
}

/** Those of the causes, too, which Node nests in several ways. */
function listCodes(error: unknown, depth = 0): readonly string[] {
  if (!(error instanceof Error) || depth > 5) return [];
  const code = getErrorCode(error);
  const others = error instanceof AggregateError ? error.errors : [];
  return [
    ...(typeof code === 'string' ? [code] : []),
    error.name,
    ...[error.cause, ...others].flatMap((cause) => listCodes(cause, depth + 1)),
  ];
}
