// A guard that comes with the gateway: nothing passes that speaks of tea.
import { PASS } from '../../../src/control/guards/ask-guard.ts';
import { defineBuiltInGuard } from '../../../src/control/guards/define-guard.ts';

interface TeaUse {
  readonly kind: 'tea';
}

export const teaGuard = defineBuiltInGuard<TeaUse>({
  kind: 'tea',
  summary: 'refuses what speaks of tea',
  members: [],
  read: () => ({ kind: 'tea' }),
  createJudge: () =>
    function* judgeTea({ value }) {
      const text = JSON.stringify(value);
      yield text.length;
      return /\btea\b/i.test(text) ? { kind: 'refuse', message: 'There is no tea here.' } : PASS;
    },
});
