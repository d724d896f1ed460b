import { type ShownRequest, WITH_TOKEN } from './exchange.ts';

/** The same request for a terminal. `$TOKEN` stays a variable. */
export function toCurl({ method, url, headers, body }: ShownRequest): string {
  const isImplied = method === (body === undefined ? 'GET' : 'POST');
  const lines = [
    `curl ${isImplied ? '' : `-X ${method} `}${quoteWord(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteHeader(name, value)}`),
    ...(body === undefined ? [] : [`-d ${quote(body)}`]),
  ];
  return lines.join(' \\\n  ');
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const quoteWord = (text: string): string => (/^[\w./:@%+=-]+$/.test(text) ? text : quote(text));

/**
 * In double quotes a shell fills in the variable, and runs what stands between `$(` and `)`: only for the text that the
 * playground itself put there. Others come from servers.
 */
const quoteHeader = (name: string, value: string): string =>
  name === 'Authorization' && value === WITH_TOKEN.Authorization
    ? `"${name}: ${value}"`
    : quote(`${name}: ${value}`);
