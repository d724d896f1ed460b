// A setting: a row of its group in src/config/groups, by the name that it has in `Config`.
import { integer } from '../../../src/config/rules.ts';
import { defineSetting } from '../../../src/config/setting.ts';

export const teaSettings = {
  minutes: defineSetting('TEA_MINUTES', integer(1, 10), {
    default: 3,
    summary: 'How long tea is drawn.',
  }),
};
