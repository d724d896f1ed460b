import { ref } from 'vue';

/** What a part of the page asks of the gateway: one thing at a time, and why it failed. */
export function useAttempt() {
  const failure = ref<string>();
  const isBusy = ref(false);

  async function attempt(run: () => Promise<void>): Promise<void> {
    failure.value = undefined;
    isBusy.value = true;
    try {
      await run();
    } catch (error) {
      failure.value = error instanceof Error ? error.message : String(error);
    } finally {
      isBusy.value = false;
    }
  }

  return { failure, isBusy, attempt };
}
