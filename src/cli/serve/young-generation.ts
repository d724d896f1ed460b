import { setFlagsFromString } from 'node:v8';

/**
 * While little happens, V8 shrinks the young generation to 1 MB, and doubles it step by step when calls come. Until it has its
 * 16 MB again, calls under way outlive its collections and are moved to the old generation, and collecting that one pauses
 * all calls. From now on it grows back in one step (docs/decisions/0022). V8 reads the option whenever it grows; a version
 * that does not know it says so on stderr, and goes on.
 */
export function growYoungGenerationInOneStep(): void {
  setFlagsFromString('--semi-space-growth-factor=16');
}
