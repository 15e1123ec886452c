# %% [markdown]
# # Input tables: polars, dates and identifiers
#
# Tables of polars and Arrow are read like those of pandas. A bike rental has a number of rides per hour and station. Stations are numbers that
# are identifiers, and the time is a date.

# %%
import datetime

import numpy as np

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
count = 4000
station = random.integers(1000, 1040, size=count)
hours = random.integers(365 * 24, size=count)
when = [datetime.datetime(2025, 1, 1) + datetime.timedelta(hours=int(hour)) for hour in hours]
is_weekend = np.array([moment.weekday() >= 5 for moment in when])
rides = 20 + 5 * random.normal(size=40)[station - 1000] + 8 * np.sin(2 * np.pi * (hours % 24) / 24) - 6 * is_weekend
rides = rides + random.normal(size=count)

# %%
try:
    import polars

    table = polars.DataFrame({"station": station, "when": when})
except ImportError:
    import pandas

    table = pandas.DataFrame({"station": station, "when": when})
model = FactorizationRegressor(categorical_features=["station"], date_encoding="calendar")
model.fit(table[:3000], rides[:3000])
r2 = model.score(table[3000:], rides[3000:])
print(f"r2 on new rows: {r2:.2f}")
assert r2 > 0.9

# %% [markdown]
# The share of the variance that each column of the table explains.

# %%
for name, share in zip(model.feature_names_in_, model.feature_importances_):
    print(f"{name}: {share:.2f}")
print("features of the model:", *model.get_feature_names_out()[:4], "...")
