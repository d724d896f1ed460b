// §18.5: one predicate decides what a caller may list, call, get, read, complete and subscribe to.
import type { RuleConfig } from '../../core/gateway-file/gateway-file.ts';
import { compileMay } from './may.ts';
import type { RuleCaller, RuleDecision, RuledItem, Rules } from './rules.ts';
import { compileWho, readScopes } from './who.ts';

/** Rules that `checkRules` has nothing against. One that it has something against allows nothing. */
export function createRules(configs: readonly RuleConfig[]): Rules {
  if (configs.length === 0) return { needClient: false, decide: () => ALLOWED };
  const rules = configs.map(compileRule);

  return {
    needClient: configs.some(looksAtClient),
    decide(item, caller) {
      let nearest: RuleDecision = DENIED;
      for (const judge of rules) {
        const decision = judge(item, caller);
        if (decision.kind === 'allowed') return decision;
        if (nearest.kind === 'denied') nearest = decision;
      }
      return nearest;
    },
  };
}

const ALLOWED: RuleDecision = { kind: 'allowed' };
const DENIED: RuleDecision = { kind: 'denied' };

/** What one rule says of an item, by itself. */
type JudgeByRule = (item: RuledItem, caller: RuleCaller) => RuleDecision;

function compileRule({ who, when, may }: RuleConfig): JudgeByRule {
  const mayUse = compileMay(may);
  const subject = compileWho(who);

  return function judgeByRule(item, caller) {
    if (when !== undefined || !mayUse(item) || !subject.fits(caller)) return DENIED;
    const { scopes } = subject;
    if (scopes === undefined) return ALLOWED;
    const granted = readScopes(caller.user);
    if (scopes.some((scope) => granted.includes(scope))) return ALLOWED;
    // One is enough: the client is told the first.
    return { kind: 'scopes_missing', scopes: scopes.slice(0, 1) };
  };
}

const looksAtClient = ({ who }: RuleConfig): boolean =>
  who !== 'everyone' && who.clients !== undefined;
