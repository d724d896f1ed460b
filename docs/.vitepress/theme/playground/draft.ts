// What somebody is entering. It survives a new session, another revision of MCP, and a login.
import { isObject, readText } from './json.ts';
import type { FieldInput } from './schema-form.ts';

export interface Draft {
  /** Of what is called. */
  readonly kind: string;
  readonly name: string;
  /** Undefined where nothing was entered yet: somebody followed a link to it. */
  readonly input: FieldInput | undefined;
}

/** As it was stored over a login. */
export function readDraft(stored: unknown): Draft | undefined {
  if (!isObject(stored)) return undefined;
  const kind = readText(stored, 'kind');
  const name = readText(stored, 'name');
  return kind === undefined || name === undefined
    ? undefined
    : { kind, name, input: isFieldInput(stored.input) ? stored.input : undefined };
}

const isFieldInput = (value: unknown): value is FieldInput =>
  typeof value === 'string' || Array.isArray(value)
    ? typeof value === 'string' || value.every(isFieldInput)
    : isObject(value) && Object.values(value).every(isFieldInput);
