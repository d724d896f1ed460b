// §27: requests approval before a call runs: by a form in the client, at the gateway's own page, or from operators. Each approval
// is for one run of one call; one by a form may also cover its repeats in the session.

import { randomUUID } from 'node:crypto';
import { fail } from '../../errors/gateway-error.ts';
import { askInSession, askToOpen, createPageQuestion } from '../../mcp/calls/client-answers.ts';
import type { ItemCall } from '../../mcp/calls/context.ts';
import { CallStopped } from '../../mcp/calls/guards.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
import type { CallControl } from '../../mcp/calls/run-call.ts';
import type { RelayedClient } from '../../mcp/catalog/catalog.ts';
import { digestJson, hasHalfCharacters, isObject, toCanonicalJson } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { withoutDefault } from '../../store/keys.ts';
import {
  type ApprovalRequest,
  type Approver,
  type CallApprovals,
  type CallToApprove,
  hasApprovalsPage,
  type NoteApproval,
  showJson,
} from './approvals.ts';

/** A call, the subject of its approval, and the way to its client. */
interface Question {
  readonly call: ItemCall;
  readonly asked: CallToApprove;
  readonly relay: RelayedClient;
}

/** Maximum length of a form, in characters: longer ones are shown on the page. */
const MAX_FORM = 2000;
/** How long a call waits for its user, who has just been sent to the page. */
const PAGE_WAIT_MS = 300_000;
/** Some clients give up a minute after the last progress notification. */
const PROGRESS_EVERY_MS = 10_000;

export function createAskFirst(
  { config, clock, notifier }: Runtime,
  approvals: CallApprovals,
  note: NoteApproval,
  getGuards: CallControl['getGuards'],
): CallControl['askFirst'] {
  const defaultIssuer = config.oauth.provider?.issuer;
  const operatorWaitMs = config.admin.approvalWaitSeconds * 1000;
  /** The page where users decide; undefined if they cannot log in to the gateway. */
  const pageUrl = hasApprovalsPage(config) ? `${config.server.baseUrl}/approvals` : undefined;

  return async function askFirst(call, whom) {
    const question = toQuestion(call, defaultIssuer);
    if (call.context.user?.grant?.isMachine === true && whom !== 'operator')
      stop(TO_MACHINES(call));
    if (!(await goOn(question, whom)) && !(await ask(question, whom))) return;
    const { approvalRounds } = call.context;
    approvalRounds?.passOn(() => approvals.beginRound(question.asked, { kind: 'approved', whom }));
  };

  /** True in a later round of a call that has been approved in the meantime. */
  async function goOn(question: Question, whom: AskWhom): Promise<boolean> {
    const { call, asked } = question;
    const brought = call.context.approvalRounds?.brought;
    if (brought === undefined) return false;
    const round = await approvals.takeRound(brought.secret, asked);
    if (round?.whom !== whom) return stop(NOT_GOOD);
    if (round.kind === 'form') settleForm(question, brought.response, listChoices(false));
    if (round.kind === 'page') {
      checkOpened(call, brought.response);
      await waitForDecision(question, round.requestId ?? '', 'page');
    }
    return true;
  }

  /** Resolves to true if the approval is for this run only: one for the session needs no further round. */
  async function ask(question: Question, whom: AskWhom): Promise<boolean> {
    if (whom === 'operator') {
      await askOperators(question);
      return true;
    }
    const { context } = question.call;
    const session = whom === 'user' ? nameSession(context) : undefined;
    if (session !== undefined && (await approvals.isAllowedInSession(session, question.asked)))
      return false;
    const hasForms = whom === 'user' && context.client.elicitation;
    const text = hasForms ? describeQuestion(question) : '';
    const isAskedByForm = hasForms && text.length <= MAX_FORM && (await askByForm(question, text));
    if (!isAskedByForm) await askAtPage(question, whom);
    return true;
  }

  // Asking with a form.

  /** False if it cannot reach the client. */
  async function askByForm(question: Question, message: string): Promise<boolean> {
    const { asked, relay, call } = question;
    const session = nameSession(call.context);
    note(asked, 'form', 'asked');
    const choices = listChoices(relay.era === 'session' && session !== undefined);
    const decision = {
      type: 'string',
      title: 'Your decision',
      enum: choices.map(([value]) => value),
      enumNames: choices.map(([, title]) => title),
    };
    const requestedSchema = { type: 'object', properties: { decision }, required: ['decision'] };
    const form = { method: 'elicitation/create', params: { message, requestedSchema } } as const;
    if (relay.era === 'stateless') {
      const secret = await approvals.beginRound(asked, { kind: 'form', whom: 'user' });
      return requireRounds(call).require(form, secret);
    }
    const response = await askInSession(relay, form);
    if (response === undefined) return false;
    const answer = settleForm(question, response, choices);
    if (answer === 'session' && session !== undefined)
      await approvals.allowInSession(session, asked);
    return true;
  }

  /** @throws CallStopped unless approved. */
  function settleForm(
    { call, asked }: Question,
    response: unknown,
    choices: readonly Choice[],
  ): 'once' | 'session' {
    const answer = readAnswer(response, choices);
    if (answer === undefined) return stop(UNANSWERED(call));
    const by = { kind: 'user', name: asked.owner?.sub } as const;
    note(asked, 'form', answer === 'refuse' ? 'refused' : 'approved', by);
    if (answer === 'refuse') return stop(REFUSED(call));
    note(asked, 'form', 'used');
    return answer;
  }

  // On the page.

  async function askAtPage(question: Question, whom: AskWhom): Promise<void> {
    const { call, asked, relay } = question;
    if (pageUrl === undefined || asked.owner === undefined) return stop(NO_WAY(call));
    const request = await requestOrTake(question, 'page');
    if (request === 'taken') return;
    const url = `${pageUrl}/${request.id}`;
    if (call.context.client.elicitationUrl !== true) return stop(TELL_LINK(url)(call));
    const elicitationId = randomUUID();
    const message = OPEN_PAGE(call);
    const toPage = createPageQuestion({ elicitationId, url, message });
    if (relay.era === 'stateless') {
      const round = { kind: 'page', whom, requestId: request.id } as const;
      const secret = await approvals.beginRound(asked, round);
      return requireRounds(call).require(toPage, secret);
    }
    checkOpened(call, await askToOpen(relay, toPage));
    await waitForDecision(question, request.id, 'page');
    relay.completeElicitation(elicitationId);
  }

  // Operators, or guards instead.

  async function askOperators(question: Question): Promise<void> {
    const { call, asked, relay } = question;
    if (asked.owner === undefined) return stop(NO_OPERATORS(call));
    const request = await requestOrTake(question, 'operator');
    if (request === 'taken') return;
    const { item } = call.target;
    const guard = getGuards?.()?.find('approval', item);
    let isDecided = false;
    if (guard !== undefined) {
      const verdict = await guard.judge({
        value: {
          name: item.name,
          server: item.server,
          arguments: readExact(call.args),
          ...(relay.meta && { _meta: readExact(relay.meta) }),
        },
        caller: call.record,
        signal: relay.signal,
        findProblem: () => 'what is to be approved cannot be changed',
      });
      const isRefused = verdict.kind === 'refused';
      const by = { kind: 'guard', name: isRefused ? verdict.by : undefined } as const;
      // A failed guard leaves the decision to operators.
      isDecided = verdict.hasFailed !== true;
      if (isDecided) await approvals.decide(request.id, isRefused ? 'refused' : 'approved', by);
    }
    if (!isDecided) notifyOperators(question, request);
    await waitForDecision(question, request.id, 'operator');
  }

  function notifyOperators(question: Question, { id, expiresAt }: ApprovalRequest) {
    const { call, asked } = question;
    const { name, server } = call.target.item;
    notifier.notify({
      kind: 'approvals',
      about: id,
      text: `${nameCaller(question)} asks to call ${nameTool(call)}. Approve or refuse it by ${new Date(expiresAt).toISOString()}:`,
      link: `${config.server.baseUrl}/admin`,
      data: { id, tool: name, server, user: asked.owner?.sub, client: asked.clientId },
    });
  }

  // Stored requests.

  /** The open request; `taken` if it was approved before. @throws CallStopped if it was refused. */
  async function requestOrTake({ call, asked }: Question, approver: Approver) {
    const { owner } = asked;
    if (owner === undefined) return stop(NO_WAY(call));
    for (;;) {
      const request = await approvals.request({ ...asked, owner }, approver);
      if (request === undefined) return stop(TOO_MANY(call));
      if (request.state === 'refused') return stop(REFUSED(call));
      if (request.state === 'pending') return request;
      if (await approvals.take(request.id, asked)) return 'taken';
    }
  }

  /** @throws CallStopped unless approved; GatewayError once the call is aborted. */
  async function waitForDecision(
    { call, asked, relay }: Question,
    id: string,
    approver: Approver,
  ): Promise<void> {
    const isOperators = approver === 'operator';
    const waiting = tellProgress(call, isOperators ? WAITING : DECIDE);
    const waitMs = isOperators ? operatorWaitMs : PAGE_WAIT_MS;
    const outcome = await approvals
      .wait(id, waitMs, relay.signal, waiting.begin)
      .finally(waiting.end);
    if (relay.signal.aborted) fail('request_cancelled');
    if (outcome === 'refused') return stop(REFUSED(call));
    if (outcome === 'pending') return stop((isOperators ? PENDING : UNDECIDED)(call));
    if (outcome === 'gone') return stop(EXPIRED(call));
    if (!(await approvals.take(id, asked))) return stop(NOT_GOOD);
  }

  /** Tells the client of the wait when it begins, and then regularly, if it wants progress. */
  function tellProgress(call: ItemCall, message: Tell) {
    let told = 0;
    let cancel = () => {};
    function tell() {
      told += 1;
      // Progress has to increase (MCP, "Progress Flow"), and the server's own begins after it: small numbers leave it room.
      call.context.progress(told / 1000, undefined, message(call));
      cancel = clock.after(PROGRESS_EVERY_MS, tell);
    }
    return {
      begin() {
        if (told === 0 && call.context.relay.wantsProgress) tell();
      },
      end: () => cancel(),
    };
  }
}

// The subject of an approval.

/** Maximum length of arguments in canonical form, in characters: no approver reads more. */
const MAX_ARGUMENTS = 65_536;

/** @throws CallStopped if the call cannot be shown exactly. */
function toQuestion(call: ItemCall, defaultIssuer: string | undefined): Question {
  const { target, context } = call;
  const { user, clientId, view, relay } = context;
  const { name, server } = target.item;
  const tool = target.entry?.ownName ?? name;
  if (call.isAmbiguous) return stop(NOT_CLEAR('the request has a member twice'));
  try {
    // Numbers as spelled: a server may distinguish 7205759403792793601 from 7205759403792793600.
    const exactArgs = readExact(call.args);
    const exactMeta = relay.meta && readExact(relay.meta);
    const args = toCanonicalJson(exactArgs);
    const meta = exactMeta && toCanonicalJson(exactMeta);
    if (args.length > MAX_ARGUMENTS)
      return stop(NOT_CLEAR(`its arguments have more than ${MAX_ARGUMENTS} characters`));
    for (const [part, text] of [
      ['arguments have', args],
      ['_meta has', meta],
    ]) {
      if (text !== undefined && hasHalfCharacters(text))
        return stop(
          NOT_CLEAR(`its ${part} a half of a character (a surrogate without its other half)`),
        );
    }
    const bound = {
      server,
      tool,
      definition: digestJson(target.entry?.ownItem ?? null),
      arguments: exactArgs,
      ...(exactMeta && { _meta: exactMeta }),
    };
    const digest = digestJson(bound);
    const owner = user && withoutDefault({ sub: user.sub, issuer: user.issuer }, defaultIssuer);
    const asked = { owner, clientId, view, name, server, tool, args, meta, digest };
    return { call, asked, relay };
  } catch (error) {
    if (error instanceof RangeError) return stop(NOT_CLEAR('its arguments nest too deep'));
    throw error;
  }
}

/** As operators know them. */
const nameCaller = ({ call: { context }, asked }: Question) => {
  const { user } = context;
  const email = user?.emailVerified === false ? undefined : user?.email;
  return email ?? user?.name ?? asked.clientId ?? 'Somebody';
};

/** Names session and login: a client that was logged out asks again, even in the same session. */
const nameSession = ({ session, user }: ItemCall['context']) =>
  session && JSON.stringify([session.sessionId, user?.grant?.id]);

const requireRounds = ({ context }: ItemCall) =>
  context.approvalRounds ?? fail('client_cannot_be_asked');

// The form.

type FormAnswer = 'once' | 'session' | 'refuse';

/** The answer, and its label. */
type Choice = readonly [FormAnswer, string];

const listChoices = (hasSession: boolean): readonly Choice[] => [
  ['once', 'Allow once'],
  ...(hasSession ? [['session', 'Allow exactly this for this session'] as const] : []),
  ['refuse', 'Do not allow'],
];

/** Undefined without a decision: the form was closed, or accepted without an offered answer. */
function readAnswer(response: unknown, choices: readonly Choice[]) {
  const { action, content } = isObject(response) ? response : {};
  if (action === 'decline') return 'refuse';
  if (action !== 'accept' || !isObject(content)) return undefined;
  const { decision } = content;
  return choices.find(([value]) => value === decision)?.[0];
}

function checkOpened(call: ItemCall, response: unknown) {
  const { action } = isObject(response) ? response : {};
  if (action !== 'accept') stop(action === 'decline' ? REFUSED(call) : UNANSWERED(call));
}

/** Names, arguments and `_meta` as they will be sent, without invisible characters. */
const describeQuestion = ({ call, asked: { args, meta, clientId } }: Question) =>
  `Allow this call?\n\nTool: ${nameTool(call)}\nArguments:\n${showJson(args)}\n\n${
    meta === undefined ? '' : `Metadata (_meta):\n${showJson(meta)}\n\n`
  }${clientId === undefined ? 'Your app' : `The app ${JSON.stringify(clientId)}`} asks for it.`;

// Messages for models and people.

const BY = 'approval';

const stop = (message: string): never => {
  throw new CallStopped(BY, message);
};

type Tell = (call: ItemCall) => string;

const nameTool: Tell = ({ target: { item, entry } }) =>
  item.server === '' ? item.name : `${entry?.ownName ?? item.name} of ${item.server}`;

const needing =
  (next: string): Tell =>
  (call) =>
    `${nameTool(call)} needs an approval before it runs. ${next}`;

const OPEN_PAGE = needing('Review the call, and decide. It then continues.');

const REFUSED: Tell = (call) =>
  `${nameTool(call)} was not approved, so nothing was done. Do not call again unless the user asks you to.`;

const UNANSWERED: Tell = (call) =>
  `It was not decided whether ${nameTool(call)} may run, so nothing was done. Do not call again unless the user asks you to.`;

const UNDECIDED: Tell = (call) =>
  `The user did not decide in time whether ${nameTool(call)} may run, so nothing was done. Call again once the user is ready to.`;

const DECIDE = needing('It waits for the user’s decision.');

const WAITING = needing('An operator was asked.');

const PENDING = needing(
  'An operator was asked and has not decided yet; nothing has been done so far. Call again with exactly the same arguments: the call runs if an operator has approved it by then, and waits again if not.',
);

const TELL_LINK = (url: string): Tell =>
  needing(
    `Nothing has been done yet. Show the user this link, which works only for this user, for 10 minutes: ${url} When the user has approved it, call again with exactly the same arguments.`,
  );

const EXPIRED = needing(
  'The request for it was used by another call, or nobody decided within ten minutes. Nothing was done. Call again to ask anew.',
);

const NOT_GOOD =
  'The approval in this call belongs to another call, has been used, or has expired, so nothing was done. Call again without it to request a new one.';

const NOT_CLEAR = (why: string) =>
  `This call needs an approval, and no one can be asked for it: ${why}. Nothing was done.`;

const NO_WAY = needing(
  'This client cannot ask its user (it does not support elicitation), and this service has no page where the user could decide. Nothing was done. Use a client that supports elicitation.',
);

const NO_OPERATORS = needing(
  'Operators only decide about calls of logged-in users, and no user is logged in. Nothing was done.',
);

const TOO_MANY = needing(
  'Too many calls wait for an approval already. Nothing was done. Call again once some of them have been decided.',
);

const TO_MACHINES = needing(
  'The rule asks a user, and this client is a program without one. Nothing was done. The author of the rules can let operators decide: "ask": "operator".',
);
