// The lines of the log as people read them in a terminal (`LOG_FORMAT=text`).
import { isObject } from './json.ts';
import { toVisibleJson } from './visible-json.ts';

const MARKS: Readonly<Record<string, string>> = { error: '✗', warn: '!', info: '·', debug: ' ' };

/** A line of JSON as text: its time here, a mark for its level, the message, and the facts that it does not say itself. */
export function renderLogText(json: string): string {
  const line: unknown = JSON.parse(json);
  if (!isObject(line)) return json;
  const { level, time, msg, ...facts } = line;
  const clock = new Date(String(time)).toTimeString().slice(0, 'hh:mm:ss'.length);
  const message = toOneLine(msg);
  const rest = Object.entries(facts)
    .filter(([, fact]) => !message.includes(toOneLine(fact)))
    .map(([name, fact]) => `${name}: ${quoteFact(fact)}`);
  const end = rest.length === 0 ? '' : ` (${rest.join(', ')})`;
  return `${clock} ${MARKS[String(level)] ?? ' '} ${message}${end}\n`;
}

/** A value that holds a line feed must not look like lines of the log. */
const toOneLine = (value: unknown): string =>
  typeof value === 'string'
    ? toVisibleJson(value).slice(1, -1).replaceAll('\\"', '"')
    : toVisibleJson(value);

/** As logfmt does: a value that could be read as two, or as the end of the facts, stands between quotation marks. */
const quoteFact = (fact: unknown): string =>
  typeof fact === 'string' && !PLAIN.test(fact) ? toVisibleJson(fact) : toOneLine(fact);

const PLAIN = /^[^\s"'`,()=\\]+$/;
