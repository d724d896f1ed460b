// Options of V8's collector for a process that serves calls. A file of its own, which loads nothing: its test looks at a young
// generation that has not grown yet.
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps what a call allocates out of the old generation, since collecting that one pauses all calls (docs/decisions/0022):
 *
 * - While little happens, V8 shrinks the young generation to 1 MB, and doubles it step by step when calls come. Until it has its
 *   size again (16 MB on Node.js 20, more on newer ones), calls under way outlive its collections and are moved. From now on it
 *   grows in one step, or two.
 * - What has outlived collections some times, V8 allocates in the old generation from then on (allocation-site pretenuring). It
 *   decided so for the bodies of answers in every second process: each 64 MB of them were a full collection.
 *
 * V8 reads both whenever it decides; a version that does not know one says so on stderr, and goes on. To be called once all is
 * loaded: what Node.js loads of itself later is compiled anew, since it was compiled with other options.
 */
export function tuneCollector(): void {
  // Whoever chose an option is not overruled.
  const isChosen = (name: string) => process.execArgv.some((option) => option.includes(name));
  if (!isChosen('semi-space')) setFlagsFromString('--semi-space-growth-factor=16');
  if (!isChosen('pretenuring')) setFlagsFromString('--no-allocation-site-pretenuring');
}
