// Finds environment variables that look like misspelled or removed settings.
import { createCountEdits } from '../platform/nearest-name.ts';
import { SETTINGS } from './config.ts';
import type { Problem } from './problem.ts';
import { type Env, listVariables } from './setting.ts';

export interface MisspelledVariable {
  readonly variable: string;
  /** The setting that was most likely intended. */
  readonly nearest: string;
}

export const describeMisspelled = ({ variable, nearest }: MisspelledVariable): string =>
  `${variable} is set, but Postern has no such setting. Did you mean ${nearest}?`;

/** Does not return values, since they may be secrets. */
export const findMisspelledVariables = (env: Env): readonly MisspelledVariable[] =>
  Object.keys(env).flatMap((variable) => {
    const isKnown = KNOWN.has(variable) || isRemovedSetting(variable);
    const nearest = isKnown ? undefined : findNearestSetting(variable);
    return nearest === undefined ? [] : [{ variable, nearest }];
  });

const KNOWN: ReadonlySet<string> = new Set(SETTINGS.flatMap(listVariables));

/**
 * Excludes settings with an alias (`HTTP_PROXY`) and those of OpenTelemetry: they also belong to other programs, so similar names
 * are not misspellings.
 */
const NAMES = SETTINGS.flatMap(({ variable, alias }) =>
  alias === undefined && !variable.startsWith('OTEL_') ? [variable] : [],
);

/** Prefixes that other programs are unlikely to use. */
const OURS = /^(OIDC|OAUTH|DCR|CIMD)_/;

/** Variables that Kubernetes and Docker set for a service whose name resembles a setting (`MCP_PORT_3000_TCP`). */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$/;

function findNearestSetting(variable: string) {
  if (SERVICE_LINK.test(variable)) return undefined;
  const upper = variable.toUpperCase();
  const whole = NAMES.find((name) => isWithoutLastWord(upper, name));
  if (whole !== undefined) return whole;
  const [ours] = OURS.exec(variable) ?? [];
  const countEdits = createCountEdits(upper);
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const name of NAMES) {
    const longest = Math.max(upper.length, name.length);
    const edits = countEdits(name, Math.min(countAllowed(name, longest, ours), least));
    if (edits >= least) continue;
    nearest = name;
    least = edits;
  }
  return nearest;
}

/** The maximum edit distance between the two names; negative if they are unrelated. */
function countAllowed(name: string, longest: number, ours: string | undefined) {
  if (ours !== undefined) return name.startsWith(ours) ? Number.POSITIVE_INFINITY : -1;
  // Allows one edit per four characters. Short names such as HOST resemble too many others.
  return name.length > 4 ? longest / 4 : -1;
}

/**
 * True for a name that lacks only the last word, such as `MCP_RATE_LIMIT` for `MCP_RATE_LIMIT_MAX`. A single word is too ambiguous.
 */
const isWithoutLastWord = (variable: string, name: string) =>
  name.startsWith(variable) &&
  variable.includes('_') &&
  /^_[A-Z]+$/.test(name.slice(variable.length));

// Removed settings. If one of them is still set, the gateway refuses to start and names the replacement.

const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  OAUTH_TOKENS:
    "this setting no longer exists. With OAUTH_MODE=broker clients always get the gateway's own tokens, with OAUTH_MODE=proxy those of the provider. Remove it. To accept tokens from the provider in addition to the gateway's own, set OAUTH_ACCEPT_PROVIDER_TOKENS=true.",
  OAUTH_ACCESS_TOKEN:
    "this setting no longer exists: no client gets an ID token. Remove it. If the provider's access tokens are not JWTs, set OAUTH_MODE=broker, where clients get the gateway's own tokens.",
  OAUTH_RESOURCE_PARAMETER:
    "this setting no longer exists. With OAUTH_MODE=broker clients get the gateway's own tokens, so the audience of the provider's tokens does not matter. Remove it.",
};

const isRemovedSetting = (variable: string) => Object.hasOwn(REMOVED_SETTINGS, variable);

/** An empty variable counts as unset. */
export const findRemovedSettings = (env: Env): readonly Problem[] =>
  Object.entries(REMOVED_SETTINGS).flatMap(([place, message]) =>
    env[place] ? [{ place, message }] : [],
  );
