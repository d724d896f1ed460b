// §22: the operators' API, with the token of this tab.
import { withBase } from 'vitepress';
import type { AdminTable } from '../../../../src/http/endpoint/admin-table.ts';
import { createUnseenPattern, UNSEEN } from '../../../../src/platform/invisible.ts';
import { parseObject } from '../playground/json.ts';
import { fetchAsOperator, logOutOperator, type Method } from './operator.ts';

/** A panel that is drawn as a table. */
export interface ShownTable extends AdminTable {
  readonly path: string;
}

/** What the list of tools of a path costs a model. */
export interface ListCost {
  readonly kind: 'all' | 'server' | 'view';
  readonly name: string;
  readonly title?: string;
  readonly tools: number;
  readonly tokens: number;
  readonly expensive: readonly { readonly name: string; readonly tokens: number }[];
  readonly isPersonal: boolean;
}

/** Users' logins at a server behind the gateway. */
export interface ConnectionCount {
  readonly server: string;
  readonly owner: 'user' | 'shared';
  readonly active: number;
  readonly loginNeeded: number;
}

export interface ConnectedPerson extends Named {
  readonly user: string;
  readonly connections: readonly {
    readonly server: string;
    readonly state: string;
    readonly account?: string;
    readonly since?: string;
    readonly problem?: string;
  }[];
}

export interface ConnectionPage {
  readonly people: readonly ConnectedPerson[];
  readonly nextCursor?: string;
}

export interface EndedConnections {
  readonly ended: number;
  readonly failed: number;
}

export interface Limits {
  readonly enabled: boolean;
  readonly groups: readonly {
    readonly group: string;
    readonly windowMs: number;
    readonly max: {
      readonly ip: number;
      readonly user?: number;
      readonly grant?: number;
      readonly global: number;
    };
  }[];
  readonly refused: number;
  readonly refusals: readonly {
    readonly group: string;
    readonly by: string;
    readonly caller: string;
    readonly until: string;
  }[];
}

export interface KeySet {
  readonly issuer: string;
  readonly url?: string;
  readonly keys: readonly { readonly kid?: string; readonly algorithms: readonly string[] }[];
  readonly fetchedAt?: string;
  readonly nextFetchAt?: string;
  readonly problem?: string;
}

export interface StoreState {
  readonly isUp: boolean;
  readonly driver?: 'embedded' | 'redis';
  readonly latencyMs?: number;
  readonly bytes?: number;
  readonly servers?: readonly {
    readonly version?: string;
    readonly mode?: string;
    readonly evictionPolicy?: string;
    readonly persistence?: string;
  }[];
  readonly problem?: string;
}

export interface UpstreamServer {
  readonly name: string;
  readonly transport: string;
  readonly isRequired: boolean;
  readonly isUp?: boolean;
  readonly since?: string;
  readonly reason?: string;
  readonly era?: string;
  readonly isPersonal: boolean;
  readonly tools?: number;
  readonly processes?: number;
}

/** A pattern of the configuration file that fits nothing. */
export interface IdlePattern {
  readonly of: 'view' | 'guard' | 'rule' | 'server';
  readonly message: string;
}

export interface GuardState {
  readonly name: string;
  readonly kind: string;
  readonly on: readonly string[];
  readonly onError: 'refuse' | 'pass';
  readonly counts: Readonly<Record<'passed' | 'changed' | 'refused' | 'failed', number>>;
  readonly problem?: string;
}

export interface ServerTool {
  readonly name: string;
  readonly listedAs?: string;
  readonly state: string;
  readonly problem?: string;
}

export interface LockPage {
  readonly isLocked: boolean;
  /** What approves. */
  readonly command: string;
  /** Why nothing can be approved here; absent where it can. */
  readonly obstacle?: string;
  readonly total?: number;
  /** Those that have differences, and how many. */
  readonly servers?: readonly { readonly server: string; readonly total: number }[];
  readonly differences?: readonly LockDifference[];
  /** Servers that are not shown at all. */
  readonly personal?: readonly string[];
  readonly nextCursor?: string;
}

export interface LockDifference {
  readonly server: string;
  readonly kind: string;
  readonly name?: string;
  readonly change: 'new' | 'changed' | 'gone';
  readonly isFormerKnown: boolean;
  readonly members: readonly {
    readonly name: string;
    readonly before?: string;
    readonly now?: string;
    readonly isCut?: boolean;
  }[];
}

/** What approving a server would change, whole. */
export interface LockReview {
  readonly server: string;
  /** What to send to approve it; absent with a problem. */
  readonly digest?: string;
  readonly differences?: readonly LockDifference[];
  /** The rest of a sentence that begins with its name. */
  readonly problem?: string;
}

export interface Approval {
  readonly approved: readonly { readonly server: string; readonly differences: number }[];
  readonly isLoaded: boolean;
}

/** A call that waits for an operator, exactly as it would be sent. */
export interface CallApproval {
  readonly id: string;
  readonly user: string;
  readonly issuer?: string;
  readonly client?: string;
  readonly view?: string;
  /** `''` for the gateway's own tools. */
  readonly server: string;
  /** By its server's own name. */
  readonly tool: string;
  readonly name: string;
  /** JSON, for people. */
  readonly arguments: string;
  /** `_meta` that goes with it: JSON, for people. */
  readonly meta?: string;
  readonly createdAt: string;
  readonly expiresAt: string;
}

export interface CallApprovalPage {
  readonly approvals: readonly CallApproval[];
  readonly nextCursor?: string;
}

export interface AccessPreview {
  readonly total: number;
  readonly seen: number;
  readonly tools: readonly PreviewedTool[];
  /** Servers that are not shown at all. */
  readonly personal: readonly string[];
  readonly nextCursor?: string;
}

export interface PreviewedTool {
  readonly name: string;
  readonly server: string;
  readonly decision: 'allowed' | 'by_arguments' | 'scopes_missing' | 'denied';
  readonly scopes?: readonly string[];
  readonly rule?: string;
  /** Who has to agree to a call first. */
  readonly ask?: 'user' | 'page' | 'operator';
}

export interface ToolPage {
  readonly total: number;
  readonly tools: readonly ServerTool[];
  readonly nextCursor?: string;
}

/** @throws Error in words for the user. */
export async function show<Shown>(path: string): Promise<Shown> {
  return (await request(path, 'GET')).json();
}

/** @throws Error in words for the user. */
export async function remove(path: string): Promise<void> {
  await request(path, 'DELETE');
}

/** What says how much has ended. @throws Error in words for the user. */
export async function removeAll<Answer>(path: string): Promise<Answer> {
  return (await request(path, 'DELETE')).json();
}

/** @throws Error in words for the user. */
export async function send<Answer>(path: string, body: object): Promise<Answer> {
  return (await request(path, 'POST', body)).json();
}

async function request(path: string, method: Method, body?: object): Promise<Response> {
  const answer = await fetchAsOperator(withBase(`/admin/api${path}`), method, body);
  if (answer.ok) return answer;
  if (answer.status === 401) {
    logOutOperator('Your login has expired. Log in again.');
    throw new Error('Your login has expired.');
  }
  const error = parseObject(await answer.text())?.error;
  const data = typeof error === 'object' && error !== null && 'data' in error ? error.data : {};
  const details =
    typeof data === 'object' && data !== null && 'details' in data
      ? String(data.details)
      : undefined;
  // It may repeat what a server said.
  throw new Error(
    details === undefined ? `The gateway answered ${answer.status}.` : escapeUnseen(details),
  );
}

export interface Named {
  readonly user?: string;
  /** Absent for users of the gateway's own provider. */
  readonly issuer?: string;
  readonly name?: string;
  readonly email?: string;
  readonly emailVerified?: boolean;
}

/** Two issuers may call their users the same. */
export const showId = ({ user = '', issuer }: Pick<Named, 'user' | 'issuer'>): string =>
  issuer === undefined ? showText(user) : `${showText(user)} of ${showText(issuer)}`;

/** What the API calls somebody by. */
export const selectUser = ({ user = '', issuer }: Named): Record<string, string> => ({
  user,
  ...(issuer !== undefined && { issuer }),
});

/** As much as is known of them: `Ann (ann@example.com, not verified)`, or the user ID. */
export function namePerson(person: Named): string {
  const { user, name, email, emailVerified } = person;
  if (user === undefined) return 'without a user';
  const address = email && showText(email) + (emailVerified === false ? ', not verified' : '');
  if (name === undefined) return address ?? showId(person);
  return address === undefined ? showText(name) : `${showText(name)} (${address})`;
}

const MAX_TEXT = 200;

/** Characters that are not seen, or turn the direction of others: a name with them could look like another one. */
const INVISIBLE = createUnseenPattern(UNSEEN);

/** What others chose, such as the name of a client: as much as one can read, and nothing that hides. */
export function showText(text: string): string {
  return escapeUnseen(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
}

/** A text of several lines, all that came of it. */
export const showLongText = (text: string): string => text.split('\n').map(escapeUnseen).join('\n');

/** All of it. */
export const escapeUnseen = (text: string): string =>
  text.replace(INVISIBLE, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
