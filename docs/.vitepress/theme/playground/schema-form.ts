// Forms of JSON Schema: what a field looks like, and what its input means. What no field can say is entered as JSON.
import { isObject, type JsonObject } from './json.ts';

export type Field =
  | TextField
  | NumberField
  | BooleanField
  | ChoiceField
  | ListField
  | GroupField
  | JsonField;

interface FieldBase {
  readonly label: string;
  readonly description: string | undefined;
  readonly isRequired: boolean;
  /** What the form begins with. */
  readonly initial: FieldInput;
}

interface TextField extends FieldBase {
  readonly kind: 'text';
  readonly inputType: 'text' | 'email' | 'url' | 'date' | 'datetime-local' | 'password';
  readonly isLong: boolean;
  /** Whether the empty text may be a value. */
  readonly mayBeEmpty: boolean;
}

interface NumberField extends FieldBase {
  readonly kind: 'number';
  readonly isInteger: boolean;
  readonly min: number | undefined;
  readonly max: number | undefined;
}

interface BooleanField extends FieldBase {
  readonly kind: 'boolean';
}

interface ChoiceField extends FieldBase {
  readonly kind: 'choice';
  readonly options: readonly { readonly label: string; readonly value: unknown }[];
}

interface ListField extends FieldBase {
  readonly kind: 'list';
  readonly item: Field;
}

interface GroupField extends FieldBase {
  readonly kind: 'group';
  readonly members: Readonly<Record<string, Field>>;
}

interface JsonField extends FieldBase {
  readonly kind: 'json';
}

/** Of a text, number, choice or JSON its text; of a list its items; of a group its members. */
export type FieldInput = string | FieldInput[] | { [member: string]: FieldInput };

/** Of a text that is empty on purpose, where '' is one that was not entered. No keyboard types it. */
export const EMPTY_TEXT = '\0';

const MAX_DEPTH = 6;
/** How many fields a form may have. Beyond, JSON is entered: schemas come from servers, and may refer to themselves. */
const MAX_FIELDS = 500;
const LONG_TEXT = 200;

interface Place {
  readonly label: string;
  readonly isRequired: boolean;
  readonly depth: number;
  /** How many fields it may consist of. */
  readonly share: number;
  /** References are looked up in it. */
  readonly root: JsonObject;
}

/** The form of a tool's arguments, or of a question. */
export function createForm(schema: unknown): Field {
  const root = isObject(schema) ? schema : {};
  const place = { label: '', isRequired: true, depth: 0, share: MAX_FIELDS, root };
  const form = createField(root, place);
  // Too large for fields, or of no known kind: arguments are an object all the same.
  return form.kind === 'json' ? { ...form, label: 'Arguments', initial: '{}' } : form;
}

function createField(given: unknown, place: Place): Field {
  const schema = resolve(given, place.root);
  const { label, isRequired } = place;
  const base = {
    label: typeof schema.title === 'string' ? schema.title : label,
    description: typeof schema.description === 'string' ? schema.description : undefined,
    isRequired,
    initial: toInput(schema.default),
  };
  const options = listOptions(schema);
  if (options !== undefined) {
    const at = options.findIndex(({ value }) => value === schema.default);
    return { ...base, kind: 'choice', options, initial: at === -1 ? '' : String(at) };
  }
  if (place.depth > MAX_DEPTH) return { ...base, kind: 'json' };
  return (CREATORS.get(readType(schema)) ?? createJsonField)(schema, base, place);
}

type CreateField = (schema: JsonObject, base: FieldBase, place: Place) => Field;

const createJsonField: CreateField = (_schema, base) => ({ ...base, kind: 'json' });

const createTextField: CreateField = ({ format, minLength, maxLength }, base) => ({
  ...base,
  kind: 'text',
  inputType: INPUT_TYPES.get(format) ?? 'text',
  isLong: typeof maxLength === 'number' && maxLength > LONG_TEXT,
  mayBeEmpty: format === undefined && !(typeof minLength === 'number' && minLength > 0),
});

const createListField: CreateField = (schema, base, place) => {
  if (Array.isArray(schema.items)) return createJsonField(schema, base, place);
  const depth = place.depth + 1;
  const item = createField(schema.items, { ...place, label: '', isRequired: true, depth });
  const isInitial = Array.isArray(schema.default) && item.kind === 'text';
  const items = isInitial ? (schema.default as unknown[]).map(toInput) : [];
  return { ...base, kind: 'list', item, initial: items };
};

const createGroupField: CreateField = (schema, base, { depth, share, root }) => {
  const properties = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const isOpen = properties.length === 0 && schema.additionalProperties !== false;
  // Of the arguments as a whole nothing is known: most such tools take none.
  if ((isOpen && depth > 0) || properties.length > share) {
    return { ...base, kind: 'json' };
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  const members = properties.map(([name, member]): [string, Field] => [
    name,
    createField(member, {
      label: name,
      isRequired: required.includes(name),
      depth: depth + 1,
      share: Math.floor(share / properties.length),
      root,
    }),
  ]);
  return {
    ...base,
    kind: 'group',
    members: Object.fromEntries(members),
    initial: Object.fromEntries(members.map(([name, { initial }]) => [name, initial])),
  };
};

const createBooleanField: CreateField = (_schema, base) => ({ ...base, kind: 'boolean' });

function createNumberField({ type, minimum, maximum }: JsonObject, base: FieldBase): NumberField {
  const types = Array.isArray(type) ? type : [type];
  return {
    ...base,
    kind: 'number',
    isInteger: types.includes('integer'),
    min: typeof minimum === 'number' ? minimum : undefined,
    max: typeof maximum === 'number' ? maximum : undefined,
  };
}

const CREATORS: ReadonlyMap<string, CreateField> = new Map<string, CreateField>([
  ['string', createTextField],
  ['number', createNumberField],
  ['integer', createNumberField],
  ['boolean', createBooleanField],
  ['array', createListField],
  ['object', createGroupField],
]);

const INPUT_TYPES: ReadonlyMap<unknown, TextField['inputType']> = new Map([
  ['email', 'email'],
  ['uri', 'url'],
  ['date', 'date'],
  ['password', 'password'],
] as const);

/** Its one type, `null` aside; `other` where there are several, or none. */
function readType(schema: JsonObject): string {
  const { type } = schema;
  if (type === undefined && isObject(schema.properties)) return 'object';
  const types = (Array.isArray(type) ? type : [type]).filter((one) => one !== 'null');
  return types.length === 1 && typeof types[0] === 'string' ? types[0] : 'other';
}

/** References into the same schema, and a choice between something and null. */
function resolve(given: unknown, root: JsonObject, seen = 0): JsonObject {
  const schema = isObject(given) ? given : {};
  if (seen > MAX_DEPTH) return {};
  if (typeof schema.$ref === 'string' && schema.$ref.startsWith('#')) {
    return resolve(followPointer(schema.$ref.slice(1), root), root, seen + 1);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) {
    const real = choices.filter((one) => !(isObject(one) && one.type === 'null'));
    if (real.length === 1) return { ...schema, ...resolve(real[0], root, seen + 1) };
  }
  return schema;
}

/** RFC 6901; undefined where it leads nowhere. */
const followPointer = (pointer: string, root: JsonObject): unknown =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => decode(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (value, part) => (isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined),
      root,
    );

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** `enum`, with `enumNames` of elicitation, or constants with titles. */
function listOptions(schema: JsonObject): ChoiceField['options'] | undefined {
  const { enumNames: names } = schema;
  if (Array.isArray(schema.enum)) {
    return schema.enum.map((value, at) => ({
      value,
      label: toLabel(Array.isArray(names) ? (names[at] ?? value) : value),
    }));
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(choices) || choices.length === 0) return undefined;
  const options = choices.flatMap((one) =>
    isObject(one) && 'const' in one
      ? [{ value: one.const, label: toLabel(one.title ?? one.const) }]
      : [],
  );
  return options.length === choices.length ? options : undefined;
}

const toLabel = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const toInput = (value: unknown): FieldInput => {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
};

export const isGroupInput = (
  input: FieldInput,
): input is Exclude<FieldInput, string | FieldInput[]> =>
  typeof input === 'object' && !Array.isArray(input);

/** A member of its own: names come from servers, and may be `constructor`. */
export const readMember = <Value>(
  object: Readonly<Record<string, Value>>,
  name: string,
): Value | undefined => (Object.hasOwn(object, name) ? object[name] : undefined);

/** A value, nothing (the member is left out), or problems by the path of their field. */
export interface ReadForm {
  readonly value: unknown;
  readonly problems: ReadonlyMap<string, string>;
}

export function readForm(field: Field, input: FieldInput): ReadForm {
  const problems = new Map<string, string>();
  return { value: readField(field, input, '', problems), problems };
}

function readField(
  field: Field,
  input: FieldInput,
  path: string,
  problems: Map<string, string>,
): unknown {
  if (field.kind === 'group') return readGroup(field, input, path, problems);
  if (field.kind === 'list') {
    const items = Array.isArray(input) ? input : [];
    if (items.length === 0 && !field.isRequired) return undefined;
    return items.map((item, at) => readField(field.item, item, `${path}/${at}`, problems));
  }
  const text = typeof input === 'string' ? input : '';
  if (text === '') {
    if (field.isRequired) problems.set(path, MISSING[field.kind]);
    return undefined;
  }
  const value = READERS[field.kind](text, field as never);
  if (value === INVALID) problems.set(path, describeWrong(field));
  return value;
}

function readGroup(
  { members, isRequired }: GroupField,
  input: FieldInput,
  path: string,
  problems: Map<string, string>,
): unknown {
  const inputs = isGroupInput(input) ? input : {};
  if (!isRequired && isUntouched(inputs)) return undefined;
  const entries = Object.entries(members).flatMap(([name, member]) => {
    const value = readField(member, readMember(inputs, name) ?? '', `${path}/${name}`, problems);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

/** What may be kept for a while. */
export function leaveOutPasswords(field: Field, input: FieldInput): FieldInput {
  if (field.kind === 'text') return field.inputType === 'password' ? '' : input;
  if (field.kind === 'list' && Array.isArray(input)) {
    return input.map((item) => leaveOutPasswords(field.item, item));
  }
  if (field.kind !== 'group' || !isGroupInput(input)) return input;
  return Object.fromEntries(
    Object.entries(input).map(([name, member]) => {
      const known = readMember(field.members, name);
      return [name, known === undefined ? member : leaveOutPasswords(known, member)];
    }),
  );
}

const isUntouched = (input: FieldInput): boolean =>
  typeof input === 'string'
    ? input === ''
    : Object.values(input).every((member: FieldInput) => isUntouched(member));

const INVALID = Symbol('invalid');

type LeafKind = 'text' | 'number' | 'boolean' | 'choice' | 'json';

const READERS: {
  readonly [Kind in LeafKind]: (text: string, field: Field & { kind: Kind }) => unknown;
} = {
  text: (text) => (text === EMPTY_TEXT ? '' : text),
  number(text, { isInteger }) {
    const value = Number(text);
    return Number.isFinite(value) && (!isInteger || Number.isInteger(value)) ? value : INVALID;
  },
  boolean: (text) => text === 'true',
  choice: (text, { options }) => options[Number(text)]?.value,
  json(text) {
    try {
      return JSON.parse(text);
    } catch {
      return INVALID;
    }
  },
};

const MISSING: Readonly<Record<LeafKind, string>> = {
  text: 'Enter a value.',
  number: 'Enter a number.',
  boolean: 'Choose yes or no.',
  choice: 'Choose one.',
  json: 'Enter JSON.',
};

const describeWrong = (field: Field): string => {
  if (field.kind !== 'number') return 'This is not valid JSON.';
  return field.isInteger ? 'Enter a whole number.' : 'Enter a number.';
};
