// §22.5: the values of a table's rows, as texts of the page.
import type { AdminColumn, AdminTableAct } from '../../../../src/http/endpoint/admin-table.ts';
import { escapeUnseen, type Named, namePerson, showId, showText } from './api.ts';

/** Whatever an answer of the API has. */
export type Row = Readonly<Record<string, unknown>>;

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null;

export function readRows(page: Row, member: string): readonly Row[] {
  const rows = page[member];
  return Array.isArray(rows) ? rows.filter(isRow) : [];
}

/** Tells rows apart where they have an ID. */
export const nameRow = ({ id }: Row, at: number): string | number =>
  typeof id === 'string' ? id : at;

/** The lines of a column; none where the row has no such member. */
export function listTexts(
  row: Row,
  { member, kind, none, statuses }: AdminColumn,
): readonly string[] {
  if (kind === 'user') return nameUser(row, none);
  const value = readMember(row, member);
  if (value === undefined || value === null || value === '')
    return none === undefined ? [] : [none];
  if (kind === 'client') return [nameClient(value) ?? none ?? ''];
  if (kind === 'time') return [String(value)];
  if (kind === 'whole') return [escapeUnseen(String(value))];
  if (kind === 'duration') return [`${value} ms`];
  if (kind === 'size') return [showSize(Number(value))];
  if (kind === 'status') return [statuses?.[String(value)]?.title ?? showText(String(value))];
  return (Array.isArray(value) ? value : [value]).map((one) => {
    if (typeof one === 'boolean') return one ? 'yes' : 'no';
    return showText(String(one));
  });
}

const readMember = (row: Row, member: string): unknown =>
  member.split('.').reduce<unknown>((at, name) => (isRow(at) ? at[name] : undefined), row);

/** The color of a status; undefined for other columns. */
export const findStatus = (row: Row, { member, kind, statuses }: AdminColumn) =>
  kind === 'status' ? (statuses?.[String(readMember(row, member))]?.status ?? 'off') : undefined;

const showSize = (bytes: number): string =>
  bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toPrecision(3)} KB`;

/** As much as is known, and the user ID beside it. */
function nameUser(row: Row, none: string | undefined): readonly string[] {
  const { emailVerified } = row;
  const [user, issuer, name, email] = USER.map((member) => readText(row, member));
  if (user === undefined && none !== undefined) return [none];
  const person: Named = {
    ...(user !== undefined && { user }),
    ...(issuer !== undefined && { issuer }),
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    ...(typeof emailVerified === 'boolean' && { emailVerified }),
  };
  const shown = namePerson(person);
  return (name || email) && user ? [shown, showId(person)] : [shown];
}

const USER = ['user', 'issuer', 'name', 'email'] as const;

function nameClient(client: unknown): string | undefined {
  if (!isRow(client)) return undefined;
  const [title, name, id, version] = CLIENT.map((member) => readText(client, member));
  const shown = [title || name || id, version].filter(Boolean).join(' ');
  return shown === '' ? undefined : showText(shown);
}

const CLIENT = ['title', 'name', 'id', 'version'] as const;

function readText(row: Row, member: string): string | undefined {
  const value = row[member];
  return typeof value === 'string' ? value : undefined;
}

/** The question of an act, with the columns of its row filled in. */
export const fillQuestion = (question: string, row: Row, columns: readonly AdminColumn[]): string =>
  question.replace(/\{(\w+)\}/g, (slot, member: string) => {
    const column = columns.find((one) => one.member === member);
    const [first, ...more] = column ? listTexts(row, column) : [slot];
    return more.length === 0 ? (first ?? '') : `${first} (${more.join(', ')})`;
  });

export function buildActPath({ path, query = [] }: AdminTableAct, row: Row): string {
  const filled = path.replace('{id}', encodeURIComponent(readText(row, 'id') ?? ''));
  const parameters = query.flatMap((member) => {
    const value = readText(row, member);
    return value === undefined ? [] : [[member, value]];
  });
  return parameters.length === 0 ? filled : `${filled}?${new URLSearchParams(parameters)}`;
}
