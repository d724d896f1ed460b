import { quoteForShell, toShellWord } from '../../../../src/platform/text.ts';
import { REFRESH_TOKEN, type ShownRequest, WITH_TOKEN } from './exchange.ts';

/** The same request for a terminal. `$TOKEN` stays a variable. */
export function toCurl({ method, url, headers, body }: ShownRequest): string {
  const isImplied = method === (body === undefined ? 'GET' : 'POST');
  const lines = [
    `curl ${isImplied ? '' : `-X ${method} `}${toShellWord(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteHeader(name, value)}`),
    ...listData(headers, body),
  ];
  return lines.join(' \\\n  ');
}

function listData(headers: ShownRequest['headers'], body: string | undefined): string[] {
  if (body === undefined) return [];
  return isForm(headers)
    ? [...new URLSearchParams(body)].map((pair) => `--data-urlencode ${quotePair(pair)}`)
    : [`-d ${quoteForShell(body)}`];
}

export const isForm = (headers: ShownRequest['headers']): boolean =>
  headers['Content-Type'] === 'application/x-www-form-urlencoded';

const quotePair = ([name, value]: readonly [string, string]): string =>
  value === REFRESH_TOKEN ? `"${name}=${value}"` : quoteForShell(`${name}=${value}`);

/**
 * In double quotes a shell fills in the variable, and runs what stands between `$(` and `)`: only for the text that the
 * playground itself put there. Others come from servers.
 */
const quoteHeader = (name: string, value: string): string =>
  name === 'Authorization' && value === WITH_TOKEN.Authorization
    ? `"${name}: ${value}"`
    : quoteForShell(`${name}: ${value}`);
