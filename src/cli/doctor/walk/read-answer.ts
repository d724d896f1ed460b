// What the answers of a gateway say: its errors (§7.1), and which limit refused a request (§8).
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Advice } from '../finding.ts';
import { type ProbeAnswer, readHeaderWords } from '../instruments.ts';

/** What stands behind a group's prefix in the variable, by the `reason` of the refusal (§7.2). */
const VARIABLES: ReadonlyMap<string | undefined, string> = new Map([
  ['rate_limit_exceeded', 'RATE_LIMIT_MAX'],
  ['user_rate_limit_exceeded', 'USER_RATE_LIMIT_MAX'],
  ['global_rate_limit_exceeded', 'GLOBAL_RATE_LIMIT_MAX'],
  ['too_many_calls', 'USER_CALLS_MAX'],
]);

/** Of a 429. `prefix` is that of the variables of the endpoint's limits, such as `DCR`. */
export function adviseOnLimit(answer: ProbeAnswer, prefix: string): Advice {
  // §7.3: the token endpoint does not say which of its limits it was; for doctor it is that of the address.
  const isOAuthError = answer.json?.error === 'temporarily_unavailable';
  const variable = VARIABLES.get(isOAuthError ? 'rate_limit_exceeded' : readReason(answer));
  const wait = `try again ${describeWait(answer)}`;
  if (variable === undefined)
    return { remedy: `${wait}. It seems that a proxy in front refused, and not the gateway.` };
  return {
    setting: `${prefix}_${variable}`,
    remedy: `${wait}, or raise this limit on the gateway.`,
  };
}

/** RFC 9110 §10.2.3, in seconds as the gateway writes it. */
function describeWait({ headers }: ProbeAnswer): string {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  if (!Number.isFinite(seconds)) return 'later';
  if (seconds <= 90) return seconds === 1 ? 'in 1 second' : `in ${seconds} seconds`;
  return `in ${Math.ceil(seconds / 60)} minutes`;
}

/** `data` of a JSON-RPC error; empty where there is none. */
export function readErrorData({ json }: ProbeAnswer): Readonly<Record<string, unknown>> {
  const error = json?.error;
  return isObject(error) && isObject(error.data) ? error.data : {};
}

/** The word by which programs tell refusals apart. */
export function readReason(answer: ProbeAnswer): string | undefined {
  const { reason } = readErrorData(answer);
  return typeof reason === 'string' ? reason : undefined;
}

/** RFC 6749 §5.2, or what else the body says. */
export function readError({ status, json, text }: ProbeAnswer): string {
  const { error, error_description: description } = json ?? {};
  const words = [error, description].filter((one) => typeof one === 'string').join(': ');
  const said = words === '' ? readHeaderWords(text) : words;
  return `${status} ${said.slice(0, 300)}`.trim();
}

/** What a client sends: JSON-RPC by HTTP. */
export const createCall = (
  method: string,
  params: JsonObject = {},
  headers: Readonly<Record<string, string>> = {},
) => ({
  method: 'POST' as const,
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
});

/** Of a client that has no token yet. */
export const MCP_CALL = createCall('tools/list');
