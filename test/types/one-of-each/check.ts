// A check of `postern doctor`: a row of one of the lists at the end of src/cli/doctor/doctor.ts.
import { defineCheck, ok, warning } from '../../../src/cli/doctor/finding.ts';

export const teaCheck = defineCheck({
  section: 'Tea',
  async run({ minutes }: { readonly minutes: number }) {
    return minutes < 6
      ? ok('tea', `Tea is drawn for ${minutes} minutes.`)
      : warning('tea', `Tea is drawn for ${minutes} minutes, and gets bitter.`, {
          setting: 'TEA_MINUTES',
          remedy: 'set it to less than 6.',
        });
  },
});
