// §27: calls that somebody has to agree to before they run: what they are bound to, and what is done with a request.

import { hash } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import { readPageRequest, renderNext, renderTime } from '../../http/endpoint/admin-requests.ts';
import { createJsonReply, getJson } from '../../http/endpoint/message.ts';
import type { GuardConfig } from '../../mcp/calls/guards.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
import type { RuleConfig } from '../../mcp/calls/rules.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { parseExactJson, writeExactJson } from '../../platform/exact-json.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import {
  hasHalfCharacters,
  isObject,
  type JsonObject,
  toCanonicalJson,
} from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import type { Owner } from '../../store/store.ts';

/** The subject of an approval: this call of this user by this client, exactly as it will be sent. */
export interface CallToApprove {
  /** Undefined without authentication: only a form can ask then. Users of `OIDC_ISSUER` have no issuer here. */
  readonly owner: Owner | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** Named as the server does. */
  readonly tool: string;
  /** As clients of `/mcp` see it. */
  readonly name: string;
  /** RFC 8785. */
  readonly args: string;
  /** `_meta`, RFC 8785; undefined where the server gets none of the client's. */
  readonly meta: string | undefined;
  /** SHA-256 (hex) over the canonical form of server, tool, its definition, the arguments and `_meta`. */
  readonly digest: string;
}

/** Decides a request that is kept: its user at the page of approvals, or an operator. */
export type Approver = 'page' | 'operator';

export type ApprovalDecision = 'approved' | 'refused';

export interface ApprovalRequest extends CallToApprove {
  readonly owner: Owner;
  readonly id: string;
  readonly approver: Approver;
  readonly state: 'pending' | ApprovalDecision;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds: what is decided is good for as long again. */
  readonly expiresAt: number;
}

/** The decider, as the audit log names it. */
export interface DecidedBy {
  readonly kind: 'user' | 'operator' | 'guard';
  /** `sub`, or the name of the guard. */
  readonly name: string | undefined;
}

/** Told of all that happens. Never throws. */
export interface ApprovalObserver {
  asked(call: CallToApprove, whom: AskedWhom): void;
  decided(call: CallToApprove, whom: AskedWhom, decision: ApprovalDecision, by: DecidedBy): void;
  /** An approval is used: the call runs. */
  used(call: CallToApprove, whom: AskedWhom): void;
}

/** The way in which somebody was asked. */
export type AskedWhom = 'form' | Approver;

/** The outcome of a round of questions (2026-07-28) in which a call was asked about. */
export interface ApprovalRound {
  /** `form`: its answer is the decision. `page`: the user was led there. `approved`: it goes on after other questions. */
  readonly kind: 'form' | 'page' | 'approved';
  /** The one whom the rules wanted to be asked: where they ask others by now, or at another path, it is good for nothing. */
  readonly whom: AskWhom;
  /** For `page`: the request. */
  readonly requestId?: string | undefined;
}

export interface CallApprovals {
  /** The request under way for the call, or a new one; undefined where its user, or all together, have too many. */
  request(
    call: CallToApprove & { readonly owner: Owner },
    approver: Approver,
  ): Promise<ApprovalRequest | undefined>;
  /** Undefined where there is none of this id, or not any more. */
  find(id: string): Promise<ApprovalRequest | undefined>;
  /** The latest first. */
  listOfUser(owner: Owner): Promise<readonly ApprovalRequest[]>;
  /** Those that operators decide, the latest first. */
  listForOperators(page: PageRequest): Promise<StoredPage<ApprovalRequest>>;
  /** The request as it is then; undefined where there is none that waits. Of two decisions the first counts. */
  decide(
    id: string,
    decision: ApprovalDecision,
    by: DecidedBy,
  ): Promise<ApprovalRequest | undefined>;
  /** True for one of many at the same moment, and for this call alone: it may run, once. */
  take(id: string, call: CallToApprove): Promise<boolean>;
  /** `pending`: nobody has decided in time, or nobody waits any more. `gone`: it has been used, or is too old. */
  wait(id: string, signal: CancelSignal): Promise<ApprovalDecision | 'pending' | 'gone'>;

  /** The same call runs in this session without a question from now on. */
  allowInSession(sessionId: string, call: CallToApprove): Promise<void>;
  isAllowedInSession(sessionId: string, call: CallToApprove): Promise<boolean>;

  /** The secret by which the next round is known. */
  beginRound(call: CallToApprove, round: ApprovalRound): Promise<string>;
  /** For one of many at the same moment; undefined for all others, for another call, and when it is too late. */
  takeRound(secret: string, call: CallToApprove): Promise<ApprovalRound | undefined>;
}

// The call that an approval is bound to, and how it is shown.

/** Characters of arguments in their canonical form: nobody reads more before they agree. */
const MAX_ARGUMENTS = 65_536;

interface CallFacts extends Pick<CallToApprove, 'owner' | 'clientId' | 'view' | 'name'> {
  readonly server: string;
  /** Named as the server does. */
  readonly tool: string;
  /** As the server wrote it. */
  readonly definition: unknown;
  readonly args: JsonObject;
  /** The part of `_meta` that its server gets. */
  readonly meta: JsonObject | undefined;
}

/** Or the sentence that says why nobody can be asked about it. */
export function describeCall({
  definition,
  args: sentArgs,
  meta: sentMeta,
  ...facts
}: CallFacts): CallToApprove | string {
  const { server, tool } = facts;
  try {
    // With numbers as they are spelled: to its server 7205759403792793601 is another than 7205759403792793600.
    const exactArgs = readExact(sentArgs);
    const exactMeta = sentMeta && readExact(sentMeta);
    const args = toCanonicalJson(exactArgs);
    const meta = exactMeta && toCanonicalJson(exactMeta);
    if (args.length > MAX_ARGUMENTS)
      return `its arguments have more than ${MAX_ARGUMENTS} characters`;
    for (const [part, text] of [
      ['arguments have', args],
      ['_meta has', meta],
    ]) {
      if (text !== undefined && hasHalfCharacters(text))
        return `its ${part} a half of a character (a surrogate without its other half)`;
    }
    const bound = {
      server,
      tool,
      definition: hashHex(toCanonicalJson(definition)),
      arguments: exactArgs,
      ...(exactMeta && { _meta: exactMeta }),
    };
    return { ...facts, args, meta, digest: hashHex(toCanonicalJson(bound)) };
  } catch (error) {
    if (error instanceof RangeError) return 'its arguments nest too deep';
    throw error;
  }
}

const hashHex = (text: string): string => hash('sha256', text, 'hex');

/** Arguments or `_meta` as people are shown them: one line for short ones, and nothing in them that is not seen. */
export const showJson = (canonical: string): string =>
  escapeInvisible(
    canonical.length <= SHORT ? canonical : writeExactJson(parseExactJson(canonical), 2),
  );

/** Characters. */
const SHORT = 80;

// Settings that rules which ask need.

/** Checks the file of a gateway that is about to serve. */
export function findAskProblems(
  { rules = [], guards = [] }: AskingFile,
  config: Pick<Config, 'auth' | 'admin' | 'oauth'>,
): readonly Problem[] {
  // They decide in place of operators.
  const hasGuards = guards.some(({ on }) => on.includes('approval'));
  return rules.flatMap(({ ask, place }) => {
    const message = ask && PROBLEMS[ask](config, hasGuards);
    return message === undefined ? [] : [{ place, message }];
  });
}

interface AskingFile {
  readonly rules?: readonly RuleConfig[];
  readonly guards?: readonly Pick<GuardConfig, 'on'>[];
}

/** True if users can log in at the gateway, and so decide at a page of its own. */
export const hasApprovalsPage = ({ oauth }: Pick<Config, 'oauth'>): boolean =>
  oauth.mode === 'broker';

type FindProblem = (
  config: Pick<Config, 'auth' | 'admin' | 'oauth'>,
  hasGuards: boolean,
) => string | undefined;

const PROBLEMS: Readonly<Record<NonNullable<RuleConfig['ask']>, FindProblem>> = {
  // Clients that can ask need nothing else; the others are told so.
  user: () => undefined,
  page: (config) =>
    hasApprovalsPage(config)
      ? undefined
      : '"ask": "page" needs OAUTH_MODE=broker: only then can users log in at the page of approvals. Set that, or write "ask": "user".',
  operator: ({ auth, admin }, hasGuards) => {
    if (!auth.required)
      return '"ask": "operator" needs to know who calls, and with AUTH_REQUIRED=false nobody logs in. Write "ask": "user".';
    return admin.groups.length > 0 || hasGuards
      ? undefined
      : '"ask": "operator" needs ADMIN_GROUPS: without those groups there are no operators who could decide. Set it, or write "ask": "user" or "page".';
  },
};

// §27.5: calls that wait for operators: what exactly they would do, and the decision.

type DecidedCalls = Pick<CallApprovals, 'listForOperators' | 'find' | 'decide'>;

export const createApprovalPanels = (approvals: DecidedCalls): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/approvals',
    async show(query) {
      const page = await approvals.listForOperators(readPageRequest(query));
      return { approvals: page.items.map(describeRequest), ...renderNext(page) };
    },
  },
  // The audit log has a second line, of the event `approval`, that says which call it is.
  {
    method: 'POST',
    path: '/approvals',
    prepare({ body, user }) {
      const { id, decision } = readCallDecision(getJson(body));
      return {
        action: decision === 'approved' ? 'approve_call' : 'refuse_call',
        target: id,
        async run() {
          const { state } = await decideCall(approvals, { id, decision }, user?.sub);
          return createJsonReply(200, { decided: state });
        },
      };
    },
  },
];

/** An operator's decision about a call. */
interface CallDecision {
  readonly id: string;
  readonly decision: ApprovalDecision;
}

/**
 * The first of two decisions counts. `operator` is who decides (`sub`).
 *
 * @throws GatewayError `approval_not_found` where nothing waits for operators under this id.
 */
async function decideCall(
  approvals: DecidedCalls,
  { id, decision }: CallDecision,
  operator: string | undefined,
): Promise<ApprovalRequest> {
  const request = await approvals.find(id);
  // Calls that users decide about themselves are not for operators.
  if (request?.approver !== 'operator') return fail('approval_not_found');
  const by = { kind: 'operator', name: operator } as const;
  return (await approvals.decide(id, decision, by)) ?? fail('approval_not_found');
}

function describeRequest(request: ApprovalRequest): JsonObject {
  const { id, owner, clientId, view, server, tool, name, args, meta, createdAt, expiresAt } =
    request;
  return {
    id,
    user: owner.sub,
    issuer: owner.issuer,
    client: clientId,
    view,
    server,
    tool: escapeInvisible(tool),
    name: escapeInvisible(name),
    arguments: showJson(args),
    meta: meta === undefined ? undefined : showJson(meta),
    createdAt: renderTime(createdAt),
    expiresAt: renderTime(expiresAt),
  };
}

const DECISIONS: ReadonlyMap<unknown, ApprovalDecision> = new Map([
  ['approve', 'approved'],
  ['refuse', 'refused'],
]);

const REQUEST_ID = /^[\w-]{43}$/;

/** @throws GatewayError `bad_request`. */
function readCallDecision(body: unknown): CallDecision {
  const { id, decision: said } = isObject(body) ? body : NOTHING;
  const decision = DECISIONS.get(said);
  return typeof id === 'string' && REQUEST_ID.test(id) && decision !== undefined
    ? { id, decision }
    : fail('bad_request', {
        details:
          'Send {"id": "ID", "decision": "approve"}, or "refuse", with an id as GET /admin/api/approvals says it.',
      });
}

const NOTHING: JsonObject = {};
