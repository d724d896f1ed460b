// A file of its own, which loads nothing: its test looks at a young generation that has not grown yet.
import { setFlagsFromString } from 'node:v8';

/**
 * While little happens, V8 shrinks the young generation to 1 MB, and doubles it step by step when calls come. Until it has its
 * size again (16 MB on Node.js 20, more on newer ones), calls under way outlive its collections and are moved to the old
 * generation, and collecting that one pauses all calls. From now on it grows in one step, or two (docs/decisions/0022). V8
 * reads the option whenever it grows; a version that does not know it says so on stderr, and goes on.
 *
 * To be called once all is loaded: what Node.js loads of itself later is compiled anew, since it was compiled with other options.
 */
export function growYoungGenerationFast(): void {
  // Whoever chose sizes for it is not overruled.
  if (process.execArgv.some((option) => option.includes('semi-space'))) return;
  setFlagsFromString('--semi-space-growth-factor=16');
}
