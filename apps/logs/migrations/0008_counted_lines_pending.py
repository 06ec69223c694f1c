from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("logs", "0007_mask_values_of")]

    operations = [
        migrations.AddField(
            model_name="countedlines",
            name="pending",
            field=models.DateTimeField(null=True),
        ),
    ]
