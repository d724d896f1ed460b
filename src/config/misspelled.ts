// Variables that look like misspelled settings.
import { computeEditDistance } from '../platform/nearest-name.ts';
import { type Env, listVariables } from './setting.ts';
import { SETTINGS } from './settings.ts';

export interface MisspelledVariable {
  readonly variable: string;
  /** The setting that was most likely meant. */
  readonly nearest: string;
}

export const describeMisspelled = ({ variable, nearest }: MisspelledVariable): string =>
  `${variable} is set, but Postern has no such setting. Did you mean ${nearest}?`;

/** Never with their values, which may be secrets. */
export const findMisspelledVariables = (env: Env): readonly MisspelledVariable[] =>
  Object.keys(env).flatMap((variable) => {
    const nearest = KNOWN.has(variable) ? undefined : findNearestSetting(variable);
    return nearest === undefined ? [] : [{ variable, nearest }];
  });

const KNOWN: ReadonlySet<string> = new Set(SETTINGS.flatMap(listVariables));

/** Those with an alias are every program's (`HTTP_PROXY`), as are those of OpenTelemetry, and so are their neighbours. */
const NAMES = SETTINGS.flatMap(({ variable, alias }) =>
  alias === undefined && !variable.startsWith('OTEL_') ? [variable] : [],
);

/** Nobody else is likely to use these. */
const OURS = /^(OIDC|OAUTH|DCR|CIMD)_/;

/** What Kubernetes and Docker set for a service of such a name (`MCP_PORT_3000_TCP`). */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$/;

function findNearestSetting(variable: string): string | undefined {
  if (SERVICE_LINK.test(variable)) return undefined;
  const upper = variable.toUpperCase();
  const whole = NAMES.find((name) => isWithoutLastWord(upper, name));
  if (whole !== undefined) return whole;
  const [ours = ''] = OURS.exec(variable) ?? [];
  // Comparing all of them with each variable of a crowded environment would be a tenth of the start.
  const candidates = NAMES.filter((name) =>
    ours === '' ? isNear(variable, countMissing(variable, name)) : name.startsWith(ours),
  );
  const [best] = candidates
    .map((name) => ({ name, edits: computeEditDistance(upper, name) }))
    .sort((a, b) => a.edits - b.edits);
  return best && (ours !== '' || isNear(variable, best)) ? best.name : undefined;
}

/** `MCP_RATE_LIMIT` for `MCP_RATE_LIMIT_MAX`; one word alone says too little. */
const isWithoutLastWord = (variable: string, name: string): boolean =>
  variable.includes('_') && name.replace(/_[A-Z]+$/, '') === variable;

/** The fewest edits that there can be between the two. */
const countMissing = (variable: string, name: string) => ({
  name,
  edits: Math.abs(variable.length - name.length),
});

/** One edit in four characters. Short names such as HOST have too many neighbours. */
const isNear = (variable: string, { name, edits }: { name: string; edits: number }): boolean =>
  name.length > 4 && edits <= Math.max(variable.length, name.length) / 4;
