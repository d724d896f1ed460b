// What people may say to their assistant to use a server: made from what one of its tools says of itself.
import { shorten } from '../../../../src/platform/text.ts';
import { isObject, type JsonObject, readText } from '../playground/json.ts';
import { nameOf } from '../playground/state.ts';
import { splitName } from '../playground/tool-groups.ts';

/** Characters. Tools come from servers, and some say everything in one sentence. */
const MAX_TASK = 120;
const MAX_VALUE = 30;
/** Beyond, nobody reads what else a tool needs. */
const MAX_ARGUMENTS = 3;

/** Of a text that may be Markdown: as far as the first full stop that another sentence follows, or the first paragraph. */
export function findFirstSentence(text: string): string {
  const paragraph = (text.trim().split(/\n\s*\n/, 1)[0] ?? '').replace(/\s+/g, ' ');
  return /^.*?[.!?。](?= \p{Lu}|$)/u.exec(paragraph)?.[0] ?? paragraph;
}

/** `owner` is the server, or the gateway for tools of its own. Undefined without a tool. */
export function createExampleRequest(
  owner: string,
  tools: readonly JsonObject[],
): string | undefined {
  const harmless = tools.filter(
    ({ annotations }) => !(isObject(annotations) && annotations.destructiveHint === true),
  );
  const tool = harmless.find((one) => findTask(one) !== undefined) ?? harmless[0] ?? tools[0];
  if (tool === undefined) return undefined;
  const task = findTask(tool);
  const request =
    task === undefined
      ? `Use ${splitName(nameOf(tool)).ownName} of ${owner}`
      : `Use ${owner} to ${shorten(task, MAX_TASK)}`;
  const text = request + describeArguments(tool);
  return /[.…]$/.test(text) ? text : `${text}.`;
}

/** `read_file`, "Reads a file." → `read a file`. Undefined where the description does not begin with the name's verb. */
function findTask(tool: JsonObject): string | undefined {
  const verb = splitWords(splitName(nameOf(tool)).ownName)[0]?.toLowerCase();
  const sentence = findFirstSentence(readText(tool, 'description') ?? '').replace(/[.!?。]$/, '');
  const [first = '', ...rest] = sentence.split(' ');
  const isVerb =
    verb !== undefined && [verb, `${verb}s`, `${verb}es`].includes(first.toLowerCase());
  return isVerb && rest.length > 0 ? [verb, ...rest].join(' ') : undefined;
}

/** What the tool cannot do without. Strangers are shown no schemas, and so no arguments. */
function describeArguments({ inputSchema }: JsonObject): string {
  if (!isObject(inputSchema) || !Array.isArray(inputSchema.required)) return '';
  const { properties, required } = inputSchema;
  const names = required.filter((name) => typeof name === 'string').slice(0, MAX_ARGUMENTS);
  const parts = names.map((name) => {
    const schema = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : {};
    return `${splitWords(name).join(' ').toLowerCase()} ${findValue(schema)}`;
  });
  return parts.length === 0 ? '' : `, with ${joinWords(parts)}`;
}

/** A value that the schema itself names, or a place for the user's own. */
function findValue(schema: unknown): string {
  if (!isObject(schema)) return '…';
  const { examples, enum: options } = schema;
  const values = [examples, options].flatMap((list) => (Array.isArray(list) ? list : []));
  const value = [schema.const, schema.default, ...values].find(
    (one) => typeof one === 'number' || (typeof one === 'string' && one !== ''),
  );
  return value === undefined ? '…' : shorten(String(value), MAX_VALUE);
}

/** `first_name` and `firstName` are `first name`. */
const splitWords = (name: string): readonly string[] =>
  name.split(/[_\-.\s/]+|(?<=[a-z])(?=[A-Z])/).filter((word) => word !== '');

const joinWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
