// Checks values by tables of members. Members that MCP makes optional are left out if they are `null` or do not fit, so that
// clients still get the rest.
import { JsonNumber } from '../../platform/exact-json.ts';
import { isObject } from '../../platform/json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';

/** True if the value fits once the edits in `found` are made. */
export type Fit = (value: unknown, found: Findings) => boolean;

export interface Finding {
  readonly path: JsonPath;
  /** Makes of the JSON that stands there what is written in its place; it is left out where this is absent. */
  readonly rewrite?: ((json: string) => string) | undefined;
}

/** The parts of one value that cannot be passed on as they are. */
export class Findings {
  readonly list: Finding[] = [];
  /** The path, from the inside, to a part that does not fit and cannot be left out. */
  misfit: JsonPath | undefined;
  readonly #path: (string | number)[] = [];

  /** The member, which has to be there. */
  fits(key: string | number, value: unknown, rule: Fit): boolean {
    this.#path.push(key);
    const isFitting = rule(value, this);
    if (!isFitting) this.misfit ??= [...this.#path];
    this.#path.pop();
    return isFitting;
  }

  /** The member is left out, or written in another way, where it does not fit. */
  fitOrMend(key: string | number, value: unknown, rule: Fit, rewrite?: Finding['rewrite']): void {
    const count = this.list.length;
    if (this.fits(key, value, rule)) return;
    this.misfit = undefined;
    // Its own members are removed with it.
    this.list.length = count;
    this.list.push({ path: [...this.#path, key], rewrite });
  }
}

export type Members = Readonly<Record<string, Fit>>;

interface ObjectMembers {
  readonly required?: Members;
  readonly optional?: Members;
  /** May be absent, but is not left out for what is in it: without it the object would say something else. */
  readonly whole?: Members;
}

export function object({ required = {}, optional = {}, whole = {} }: ObjectMembers): Fit {
  const members = [
    ...Object.entries(required).map((member) => [...member, 'required'] as const),
    ...Object.entries(whole).map((member) => [...member, 'whole'] as const),
    ...Object.entries(optional).map((member) => [...member, 'optional'] as const),
  ];
  return (value, found) => {
    if (!isObject(value)) return false;
    for (const [name, rule, presence] of members) {
      const member = value[name];
      if (presence !== 'required' && member === undefined) continue;
      if (presence === 'optional' || (presence === 'whole' && member === null)) {
        found.fitOrMend(name, member, rule);
      } else if (!found.fits(name, member, rule)) return false;
    }
    return true;
  };
}

export const text: Fit = (value) => typeof value === 'string';
export const flag: Fit = (value) => typeof value === 'boolean';
export const anyObject: Fit = (value) => isObject(value);

export const oneOf =
  (...texts: readonly string[]): Fit =>
  (value) =>
    texts.some((one) => one === value);

export const number =
  (isRight: (value: number) => boolean): Fit =>
  (value) => {
    const plain = value instanceof JsonNumber ? value.valueOf() : value;
    return typeof plain === 'number' && isRight(plain);
  };

/** Fits as a whole. */
export const listOf =
  (fit: Fit): Fit =>
  (value, found) =>
    Array.isArray(value) && value.every((one, index) => found.fits(index, one, fit));

/** Entries that do not fit are left out, or rewritten. */
export const mendedList =
  (fit: Fit, rewrite?: Finding['rewrite']): Fit =>
  (value, found) => {
    if (!Array.isArray(value)) return false;
    for (const [index, one] of value.entries()) found.fitOrMend(index, one, fit, rewrite);
    return true;
  };

/** Members by any name; those that do not fit are left out. */
export const recordOf =
  (fit: Fit): Fit =>
  (value, found) => {
    if (!isObject(value)) return false;
    for (const [name, one] of Object.entries(value)) found.fitOrMend(name, one, fit);
    return true;
  };

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** ISO 8601 with a time zone, and of a day that there is. */
export const dateTime: Fit = (value) => {
  const [, year, month, day] = (typeof value === 'string' && DATE_TIME.exec(value)) || [];
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
};

/** Characters that are checked of a longer one: a wrong one, such as a `data:` URL, shows in its beginning. */
const LOOKED_AT = 1024;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const BASE64_BEGINNING = /^[A-Za-z0-9+/\t\n\f\r ]*$/;

/** In the form that `atob` takes. */
export const base64: Fit = (value) => {
  if (typeof value !== 'string') return false;
  return value.length > LOOKED_AT
    ? BASE64_BEGINNING.test(value.slice(0, LOOKED_AT))
    : BASE64.test(value.replace(/[\t\n\f\r ]/g, ''));
};
