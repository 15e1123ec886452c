# %% [markdown]
# # Several classes: handwritten digits
#
# The rows are 1,797 images of 8 x 8 pixels. One model of each digit against the others is trained. The probabilities are the softmax of
# their log-odds; a temperature, which is fitted to held-out rows, calibrates them.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from dyad import FactorizationClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=700, random_state=0)
model = FactorizationClassifier(rank=2, solver="sampling", samples=100).fit(X_train, y_train)
probabilities, deviations = model.predict_proba(X_test, return_std=True)
print(f"accuracy {model.score(X_test, y_test):.3f}, log-loss {log_loss(y_test, probabilities):.3f}, "
      f"temperature {model.temperature_:.2f}")
assert model.score(X_test, y_test) > 0.9

# %% [markdown]
# The digits with the least certain predictions.

# %%
for row in np.argsort(probabilities.max(axis=1))[:5]:
    first, second = np.argsort(-probabilities[row])[:2]
    print(f"{first} with probability {probabilities[row, first]:.2f} ± {deviations[row, first]:.2f}, "
          f"{second} with {probabilities[row, second]:.2f}; true digit {y_test[row]}")
