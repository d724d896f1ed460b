// What `postern rules test` prints.
import type { UserContext } from '../../endpoint/user-context.ts';
import { toVisibleJson } from '../../platform/visible-json.ts';
import type { RuleDecision, RuledItem } from '../../policy/rules/rules.ts';

export interface JudgedItem {
  readonly item: RuledItem;
  readonly decision: RuleDecision;
  /** Of a call that is denied: the rule that allows one with other arguments. */
  readonly withOtherArgs?: string | undefined;
}

interface Asked {
  readonly path: string;
  /** `"rules": "everyone"`. */
  readonly meansNoRules: boolean;
  readonly user: UserContext;
  readonly clientId: string | undefined;
  /** Sentences that are about no single item. */
  readonly notes: readonly string[];
}

/** For programs: one object for each item. */
export function toJson(items: readonly JudgedItem[]): string {
  const rows = items.map(({ item: { kind, name, server }, decision, withOtherArgs }) => ({
    kind,
    name,
    server,
    decision: decision.kind,
    ...(decision.kind === 'allowed' && decision.isByArgs === true && { byArguments: true }),
    ...(decision.kind === 'scopes_missing' && { scopes: decision.scopes }),
    rule: decision.kind === 'denied' ? null : (decision.rule ?? null),
    ...(withOtherArgs !== undefined && { ruleWithOtherArguments: withOtherArgs }),
  }));
  return JSON.stringify(rows, undefined, 2);
}

export function renderItems(items: readonly JudgedItem[], asked: Asked): string {
  const rows = items.map((judged) => [
    describeDecision(judged.decision),
    describeItem(judged.item),
    describeRule(judged, asked),
  ]);
  const widths = [0, 1].map((column) =>
    Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const notes = asked.notes.length === 0 ? [] : ['', ...asked.notes];
  return [describeAsked(items, asked), '', ...lines, ...notes].join('\n');
}

function describeAsked(items: readonly JudgedItem[], { path, user, clientId }: Asked): string {
  const seen = items.filter(({ decision }) => decision.kind !== 'denied').length;
  const who = toVisible(user.email ?? (user.sub === '' ? 'Somebody' : user.sub));
  const client = clientId === undefined ? 'an unknown client' : `client ${toVisible(clientId)}`;
  return `${who} with ${client} sees ${seen} of ${items.length}, by ${path}:`;
}

function describeDecision(decision: RuleDecision): string {
  if (decision.kind === 'denied') return 'denied';
  if (decision.kind === 'scopes_missing') return `needs scope ${decision.scopes.join(' ')}`;
  return decision.isByArgs === true ? 'decided by its arguments' : 'allowed';
}

function describeRule({ decision, withOtherArgs }: JudgedItem, { meansNoRules }: Asked): string {
  if (decision.kind === 'denied')
    return withOtherArgs === undefined
      ? 'no rule allows it'
      : `no rule allows it with these arguments; with others ${withOtherArgs} does`;
  return decision.rule ?? (meansNoRules ? 'rules is "everyone"' : 'there are no rules');
}

/** As a pattern would name it. */
const describeItem = ({ kind, name }: RuledItem): string =>
  toVisible(kind === 'tool' ? name : `${kind}:${name}`);

/** Servers and clients choose names: nothing of them moves the cursor of a terminal. */
function toVisible(text: string): string {
  const json = toVisibleJson(text);
  return json === `"${text}"` ? text : json;
}
